"""What every benchmark shares: interleaved timing, fresh processes, the machine, and results on screen and disk."""
