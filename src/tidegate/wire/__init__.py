"""What goes over the wire: msgspec structs of the REST faces, nothing else."""
