"""What a server tells of itself: numbers, log lines, traces. Every room may use it; it knows none of them."""
