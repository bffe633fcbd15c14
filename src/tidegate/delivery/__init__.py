"""Where events are delivered to: webhooks, and functions that the server was started with."""
