#pragma once
// The second stage: the chosen token becomes the next input, one row a step, until something ends the reply.

#include "engine/sequence.h"

namespace couplet::engine {

// Feeds sequence.choice back: appends it, turns it into text, and sets sequence.stop where the reply ends. `shown` then
// holds what may be shown. An end id is part of the tokens but never of the text.
void feed_back(Sequence& sequence, const Tokenizer& tokenizer);

// The reply ends for another reason than its own tokens: releases the text that was held back.
void end_reply(Sequence& sequence, StopReason reason);

}  // namespace couplet::engine
