"""The use cases: one transaction and one authorization question each."""
