"""The files of the web view: this folder is shipped as the package ``tensorplay.web``."""
