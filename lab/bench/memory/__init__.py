"""A node within little memory."""
