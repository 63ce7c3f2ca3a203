"""Tuning apart from the program that multiplies: signatures from a file, measured in processes that may die."""
