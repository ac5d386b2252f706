"""What the tests share: scenes, stand-ins, statistics, hostile files."""
