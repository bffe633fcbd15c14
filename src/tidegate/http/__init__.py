"""HTTP: the application, its endpoints, and the faces of the API."""
