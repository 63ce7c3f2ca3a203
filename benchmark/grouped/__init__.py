"""Groups of products: what is measured, by whom, and what follows for the limits of the choice."""
