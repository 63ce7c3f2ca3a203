"""The parts of the service's benchmark: each measures one promise, with hosts and clients in processes of their own."""
