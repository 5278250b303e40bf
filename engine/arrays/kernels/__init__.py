"""What is there for speed: functions of plain arrays, which may ask what type an array has, so that no operation does."""
