"""Plug-ins for frameworks that have backends of the operator; PLUGINS.md says how each is switched on and off."""
