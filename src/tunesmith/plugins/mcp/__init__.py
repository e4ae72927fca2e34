"""The server for agents, by the Model Context Protocol: tools, resources and a prompt; docs/mcp.md."""
