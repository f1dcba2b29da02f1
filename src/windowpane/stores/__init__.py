"""Where sessions are kept: one append-only log of events per session, behind one small port."""
