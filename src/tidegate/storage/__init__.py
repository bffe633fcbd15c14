"""Object stores and the layout of a Delta log in them."""
