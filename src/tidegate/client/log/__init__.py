"""Delta's log as a reader sees it: from the catalog's word and the files of a table to the state of one version.

names and segment say which files make a version, actions and checkpoints read them, replay reconciles what they say,
and snapshot does all of that in one call.
"""
