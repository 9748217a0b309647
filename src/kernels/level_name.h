#pragma once
// COUPLET_LEVEL_NAME: the namespace that COUPLET_LEVEL names, as text, for a level that tests compile under other names too.

#define COUPLET_QUOTED(level) #level
#define COUPLET_QUOTED_VALUE(level) COUPLET_QUOTED(level)
#define COUPLET_LEVEL_NAME COUPLET_QUOTED_VALUE(COUPLET_LEVEL)
