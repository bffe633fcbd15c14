"""The surrounding Unity Catalog API: catalogs, schemas, tables, metastore."""
