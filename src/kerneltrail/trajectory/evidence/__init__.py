"""How a composition is judged from the rows of one user: the evidences, by name."""
