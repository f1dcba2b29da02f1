"""Sessions from elsewhere: logs of other agents, spans and exports, read and kept like calls that were recorded."""
