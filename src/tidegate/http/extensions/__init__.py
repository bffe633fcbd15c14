"""What Tidegate serves beyond the APIs that others have defined."""
