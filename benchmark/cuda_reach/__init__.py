"""What the NVIDIA backend must reach, one part a module: each has `measure(quick)`, which returns a `Result`."""
