"""How weights are found: the environment, rewards, and the algorithms that use them."""
