"""The face that today's Delta clients speak: Delta REST v1.0."""
