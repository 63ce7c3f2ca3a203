"""Who can run a product: the contract of a backend, and the backends."""
