#include "text/tokenizer.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "couplet/error.h"
#include "text/pretokenize.h"
#include "text/tokenizer_testing.h"
#include "text/utf8.h"
#include "text/word_pattern.h"

namespace couplet::text {
namespace {

using Ids = std::vector<TokenId>;
constexpr TokenizeOptions kSpecial{.special = true};

TokenId id_of(const Tokenizer& tokenizer, std::string_view text) {
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.vocabulary_text(id) == text) return id;
  }
  return -1;
}

// The ids of tokens that the vocabulary spells so.
Ids ids_of(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  Ids ids;
  for (const std::string& text : texts) ids.push_back(id_of(tokenizer, text));
  return ids;
}

Ids operator+(Ids left, const Ids& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

std::string bytes_of(const Tokenizer& tokenizer, const Ids& ids) {
  std::string bytes;
  for (const TokenId id : ids) bytes += tokenizer.bytes(id);
  return bytes;
}

std::string random_text(std::mt19937& random, std::size_t max_parts) {
  static const std::vector<std::string> kParts = {
      "the",     " the", "  ",     "\t\t",     "\n",       "a",
      "th",      "AA",   "A",      "é",        "日本",     "😀",
      "\x80",    "\xF1", "\x04",   "\xE6\x97", "1",        "12",
      "<table>", "</s>", "\uFFFD", "<0x0A>",   "<unk>",    "<|im_end|>",
      ".",       "> <",  "\r\n",   "'s",       "\xEE\x80", std::string(1, '\0')};
  std::string text;
  for (std::size_t i = random() % max_parts; i > 0; --i) text += kParts[random() % kParts.size()];
  return text;
}

TEST(Bpe, MergesInTheOrderOfTheList) {
  const auto tokenizer = toy_bpe().load();
  EXPECT_EQ(tokenizer->tokenize("the the"), ids_of(*tokenizer, {"the", "Ġthe"}));
  EXPECT_EQ(tokenizer->tokenize("th ethe"), ids_of(*tokenizer, {"th", "Ġ", "e", "the"}));
  EXPECT_EQ(tokenizer->tokenize("AAAAA"), ids_of(*tokenizer, {"AAAA", "A"}));
  EXPECT_EQ(tokenizer->tokenize(""), Ids{});
}

TEST(Bpe, SpecialTextIsTextUnlessAskedFor) {
  const auto tokenizer = toy_bpe().load();
  const Ids plain = tokenizer->tokenize("a<|im_end|>b");
  EXPECT_EQ(plain, ids_of(*tokenizer, {"a", "<", "|", "i", "m", "_", "e", "n", "d", "|", ">", "b"}));
  EXPECT_EQ(tokenizer->tokenize("a<|im_end|>b", kSpecial), ids_of(*tokenizer, {"a", "<|im_end|>", "b"}));
}

TEST(Bpe, NoMergeMakesAControlToken) {
  ToyVocabulary toy = toy_bpe();
  toy.add("EN");
  toy.add("END", kControl);
  toy.merges.insert(toy.merges.end(), {"E N", "EN D"});
  const auto tokenizer = toy.load();
  EXPECT_EQ(tokenizer->tokenize("END"), ids_of(*tokenizer, {"EN", "D"}));
  EXPECT_EQ(tokenizer->tokenize("END", kSpecial), ids_of(*tokenizer, {"END"}));
}

TEST(Bpe, WhatTheVocabularyLacksBecomesTheReplacementCharacter) {
  const auto tokenizer = toy_bpe().load();
  const Ids replacement = tokenizer->tokenize("\uFFFD");
  EXPECT_EQ(bytes_of(*tokenizer, replacement), "\uFFFD");
  const std::string lead_f1 = "\xF1\x80\x80\x80";  // U+40000, a whole character
  EXPECT_EQ(tokenizer->tokenize("a\x04z"), tokenizer->tokenize("a\uFFFDz"));
  EXPECT_EQ(tokenizer->tokenize("a" + lead_f1 + "z"), tokenizer->tokenize("a\uFFFDz"));
  EXPECT_EQ(tokenizer->tokenize("\x04" + lead_f1), replacement + replacement);
  EXPECT_EQ(tokenizer->inexpressible("a\x04z" + lead_f1 + "\uFFFD"), 2U);
  EXPECT_EQ(tokenizer->inexpressible("plain \uFFFD text"), 0U);
  // Not a character: only the byte that is lacking is replaced.
  EXPECT_EQ(bytes_of(*tokenizer, tokenizer->tokenize("\xF1\x80z")), "\uFFFD\x80z");
  EXPECT_EQ(tokenizer->inexpressible("\xF1\x80z"), 1U);
}

TEST(Bpe, TheUnknownTokenIsTheLastResort) {
  ToyVocabulary toy;
  for (const char* letter : {"a", "b"}) toy.add(letter);
  EXPECT_THROW(toy.load(), Error);  // no way to express "c"
  const TokenId unknown = toy.add("<unk>", kUnknown);
  const auto tokenizer = toy.load();
  EXPECT_EQ(tokenizer->unknown_id(), unknown);
  EXPECT_EQ(tokenizer->tokenize("acéb"), (Ids{0, unknown, unknown, 1}));
  EXPECT_EQ(tokenizer->inexpressible("acéb"), 2U);
}

TEST(Bpe, WholeWordsWhereThePreTokenizerSaysSo) {
  ToyVocabulary toy = toy_bpe();
  const TokenId hello = toy.add("hello");  // no merge leads to it
  EXPECT_EQ(toy.load()->tokenize("hello").size(), 5U);
  toy.pre = "llama-bpe";
  EXPECT_EQ(toy.load()->tokenize("hello"), Ids{hello});
}

TEST(Bpe, EveryByteComesBack) {
  const auto tokenizer = toy_bpe().load();
  std::mt19937 random(11);
  for (int i = 0; i < 3000; ++i) {
    const std::string text = random_text(random, 30);
    if (tokenizer->inexpressible(text) > 0) continue;
    ASSERT_EQ(bytes_of(*tokenizer, tokenizer->tokenize(text)), text);
  }
  std::string all;
  for (int byte = 255; byte >= 0; --byte) {
    if (byte != 0x04 && byte != 0xF1 && byte != 0xF2) all += static_cast<char>(byte);
  }
  EXPECT_EQ(bytes_of(*tokenizer, tokenizer->tokenize(all)), all);
}

TEST(Bpe, AWordHasItsIdsWhereverItStands) {
  const auto tokenizer = toy_bpe().load();
  const WordPattern pattern(find_pre_tokenizer("gpt-2").patterns[0]);
  std::mt19937 random(12);
  for (int i = 0; i < 500; ++i) {
    std::string text;
    while (tokenizer->inexpressible(text = random_text(random, 200)) > 0) {
    }
    Ids word_by_word;
    std::size_t read = 0;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = pattern.end_of_word(text, begin, read);
      word_by_word = word_by_word + tokenizer->tokenize(text.substr(begin, end - begin));
      begin = end;
    }
    ASSERT_EQ(tokenizer->tokenize(text), word_by_word);
  }
}

TEST(Spm, UserDefinedPiecesComeFirstAndLongest) {
  const auto tokenizer = toy_spm().load();
  for (const TokenizeOptions options : {TokenizeOptions{}, kSpecial}) {
    EXPECT_EQ(tokenizer->tokenize("\t\t\tthe", options), ids_of(*tokenizer, {"\t\t", "\t", "the"}));
    EXPECT_EQ(tokenizer->tokenize("    the", options), ids_of(*tokenizer, {"   ", "\u2581the"}));
    EXPECT_EQ(tokenizer->tokenize("a<table></table>", options),
              ids_of(*tokenizer, {"<0x61>", "<table>", "</table>"}));
    EXPECT_EQ(tokenizer->tokenize("</s>", options), ids_of(*tokenizer, {"</s>"}));
  }
}

TEST(Spm, SpelledTokensStayText) {
  const auto tokenizer = toy_spm().load();
  EXPECT_EQ(bytes_of(*tokenizer, tokenizer->tokenize("<0x0A>")), "<0x0A>");
  EXPECT_EQ(tokenizer->tokenize("<eos>").size(), 5U);
  EXPECT_EQ(tokenizer->tokenize("<eos><unk>", kSpecial), ids_of(*tokenizer, {"<eos>", "<unk>"}));
}

TEST(Spm, ScoresDecideAndTiesGoLeft) {
  ToyVocabulary toy = toy_spm();
  toy.add("xy", kNormal, -3);
  toy.add("yx", kNormal, -3);
  toy.add("pq", kNormal, -5);
  toy.add("qr", kNormal, -4);
  const auto tokenizer = toy.load();
  EXPECT_EQ(tokenizer->tokenize("xyx"), ids_of(*tokenizer, {"xy", "<0x78>"}));
  EXPECT_EQ(tokenizer->tokenize("yxy"), ids_of(*tokenizer, {"yx", "<0x79>"}));
  EXPECT_EQ(tokenizer->tokenize("pqr"), ids_of(*tokenizer, {"<0x70>", "qr"}));
}

TEST(Spm, AMarkedSpaceIsReadAsASpace) {
  const auto tokenizer = toy_spm().load();
  EXPECT_EQ(tokenizer->tokenize("A\u2581the\u2581A"), tokenizer->tokenize("A the A"));
  EXPECT_EQ(detokenize(*tokenizer, tokenizer->tokenize("A the A")), "A the A");
}

TEST(Spm, SpacePrefixOnEveryStretchOfText) {
  ToyVocabulary toy = toy_spm();
  toy.more = [](formats::GgufBuilder&) {};  // add_space_prefix is on where the file doesn't say
  const auto tokenizer = toy.load();
  EXPECT_EQ(tokenizer->tokenize("the"), ids_of(*tokenizer, {"\u2581the"}));
  EXPECT_EQ(tokenizer->tokenize("the<eos>the", kSpecial),
            ids_of(*tokenizer, {"\u2581the", "<eos>", "\u2581the"}));
  EXPECT_EQ(tokenizer->tokenize("<eos>", kSpecial), ids_of(*tokenizer, {"<eos>"}));
  EXPECT_EQ(tokenizer->tokenize(""), Ids{});
}

TEST(Spm, BytesOfWhatIsNoPiece) {
  const auto tokenizer = toy_spm().load();
  EXPECT_EQ(tokenizer->tokenize("éß\xFF"), ids_of(*tokenizer, {"é", "<0xC3>", "<0x9F>", "<0xFF>"}));
  EXPECT_EQ(tokenizer->inexpressible("éß\xFF"), 0U);
}

TEST(Spm, WithoutByteTokensTheReplacementCharacter) {
  ToyVocabulary toy;
  toy.model = "llama";
  toy.pre = "";
  const TokenId unknown = toy.add("<unk>", kUnknown);
  const TokenId a = toy.add("a");
  toy.more = [](formats::GgufBuilder& file) { file.add("tokenizer.ggml.add_space_prefix", false); };
  EXPECT_EQ(toy.load()->tokenize("aßa"), (Ids{a, unknown, a}));
  const TokenId replacement = toy.add("\uFFFD");
  const auto tokenizer = toy.load();
  EXPECT_EQ(tokenizer->tokenize("aßa\xFF"), (Ids{a, replacement, a, replacement}));
  EXPECT_EQ(tokenizer->inexpressible("aßa\xFF\uFFFD"), 2U);
}

TEST(Spm, EveryByteComesBack) {
  const auto tokenizer = toy_spm().load();
  std::mt19937 random(13);
  for (int i = 0; i < 3000; ++i) {
    const std::string text = random_text(random, 30);
    ASSERT_EQ(bytes_of(*tokenizer, tokenizer->tokenize(text)), text);
  }
}

// The definition, without words and cache: join the best pair of neighbours that spells a piece, until there
// is none.
std::vector<std::string> merge_plainly(const ToyVocabulary& toy, const std::string& text) {
  std::vector<std::string> parts;
  for (const char letter : text) parts.emplace_back(1, letter);
  while (true) {
    std::size_t best = parts.size();
    float best_score = -std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      for (std::size_t id = 0; id < toy.texts.size(); ++id) {
        if (toy.types[id] == kNormal && toy.texts[id] == parts[i] + parts[i + 1] &&
            toy.scores[id] > best_score) {
          best = i;
          best_score = toy.scores[id];
        }
      }
    }
    if (best == parts.size()) return parts;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Spm, MarkedSpaces) {
  const auto tokenizer = toy_spm().load();
  EXPECT_EQ(tokenizer->tokenize("\u2581the"), ids_of(*tokenizer, {"\u2581the"}));
  EXPECT_EQ(tokenizer->tokenize("\u2581\u2581"), ids_of(*tokenizer, {"  "}));
  EXPECT_EQ(tokenizer->tokenize("\u2581 "), ids_of(*tokenizer, {"  "}));
  // Pieces that are spelled with marks alone are found first, as Hugging Face finds them.
  EXPECT_EQ(tokenizer->tokenize("\u2581\u2581 "), ids_of(*tokenizer, {"  ", "\u2581"}));
  EXPECT_EQ(tokenizer->tokenize("   "), ids_of(*tokenizer, {"   "}));
}

TEST(Spm, CuttingWordsChangesNoMerge) {
  std::mt19937 random(14);
  const auto random_letters = [&](std::size_t length) {
    std::string letters;
    for (std::size_t i = 0; i < length; ++i) letters += static_cast<char>('a' + random() % 4);
    return letters;
  };
  for (int round = 0; round < 40; ++round) {
    ToyVocabulary toy;
    toy.model = "llama";
    toy.pre = "";
    for (const char* letter : {"a", "b", "c", "d"}) toy.add(letter);
    for (int i = 0; i < 8; ++i) {
      const std::string piece = random_letters(2 + random() % 4);
      if (std::find(toy.texts.begin(), toy.texts.end(), piece) == toy.texts.end())
        toy.add(piece, kNormal, static_cast<float>(random() % 6));
    }
    toy.add("<unk>", kUnknown);
    toy.more = [](formats::GgufBuilder& file) { file.add("tokenizer.ggml.add_space_prefix", false); };
    const auto tokenizer = toy.load();
    for (int i = 0; i < 20; ++i) {
      const std::string text = random_letters(random() % 150);
      ASSERT_EQ(tokenizer->tokenize(text), ids_of(*tokenizer, merge_plainly(toy, text))) << text;
    }
  }
}

TEST(Tokenizer, FirstOfTwoAlikeCounts) {
  ToyVocabulary toy = toy_spm();
  toy.add("the", kNormal, 100);
  toy.add("<table>", kUserDefined);
  const auto tokenizer = toy.load();
  EXPECT_EQ(tokenizer->tokenize("the<table>"),
            ids_of(*tokenizer, {"the", "<table>"}));  // id_of() finds the first
}

TEST(Tokenizer, BosOnlyWhereTheModelWantsOne) {
  ToyVocabulary toy = toy_spm();
  EXPECT_TRUE(toy.load()->adds_bos());
  EXPECT_EQ(toy.load()->tokenize("A", {.bos = true}).front(), 1);
  EXPECT_EQ(toy.load()->tokenize("", {.bos = true}), Ids{1});
  EXPECT_EQ(toy.load()->tokenize("A").size(), 1U);
  toy = toy_bpe();
  EXPECT_FALSE(toy.load()->adds_bos());
  EXPECT_EQ(toy.load()->tokenize("A", {.bos = true}).size(), 1U);
  const auto more = toy.more;
  toy.more = [&](formats::GgufBuilder& file) {
    more(file);
    file.add("tokenizer.ggml.add_bos_token", true);
  };
  EXPECT_EQ(toy.load()->tokenize("A", {.bos = true}), (Ids{0, id_of(*toy.load(), "A")}));
}

TEST(Tokenizer, EveryTurnEndIsAnEnd) {
  const auto ends = [](const ToyVocabulary& toy) {
    const auto tokenizer = toy.load();
    return Ids(tokenizer->end_ids().begin(), tokenizer->end_ids().end());
  };
  EXPECT_EQ(ends(toy_bpe()), (Ids{1, 2}));
  EXPECT_EQ(ends(toy_spm()), (Ids{2, 3}));  // </s> is a user-defined piece there
  ToyVocabulary toy = toy_bpe();
  const TokenId end = toy.add("<|end|>", kControl);
  const TokenId extra = toy.add("<stop>", kControl);
  const auto more = toy.more;
  toy.more = [&](formats::GgufBuilder& file) {
    more(file);
    file.add("tokenizer.ggml.eot_token_id", static_cast<std::uint32_t>(extra));
  };
  EXPECT_EQ(ends(toy), (Ids{1, 2, end, extra}));
  const TokenId answered = toy.add("<|return|>", kControl);  // then <|end|> ends a message, not the turn
  EXPECT_EQ(ends(toy), (Ids{1, 2, extra, answered}));
}

TEST(Tokenizer, WhatATokenIs) {
  const auto bpe = toy_bpe().load();
  EXPECT_EQ(bpe->family(), "bpe");
  EXPECT_EQ(bpe->pre_tokenizer(), "gpt-2");
  EXPECT_EQ(bpe->bytes(id_of(*bpe, "Ġthe")), " the");
  EXPECT_EQ(bpe->bytes(1), "");
  EXPECT_EQ(bpe->bytes(1, true), "<|im_end|>");
  EXPECT_EQ(bpe->kind(1), TokenKind::control);
  EXPECT_EQ(bpe->unknown_id(), 2);
  const auto spm = toy_spm().load();
  EXPECT_EQ(spm->family(), "spm");
  EXPECT_EQ(spm->pre_tokenizer(), "");
  EXPECT_EQ(spm->bytes(id_of(*spm, "\u2581the")), " the");
  EXPECT_EQ(spm->bytes(id_of(*spm, "<0x0A>")), "\n");
  EXPECT_STREQ(name(spm->kind(id_of(*spm, "<0x0A>"))), "byte");
  EXPECT_STREQ(name(spm->kind(id_of(*spm, "<table>"))), "user_defined");
  EXPECT_STREQ(name(spm->kind(spm->unknown_id())), "unknown");
  for (const TokenId id :
       {-1, spm->vocab_size(), std::numeric_limits<TokenId>::max(), std::numeric_limits<TokenId>::min()}) {
    EXPECT_EQ(spm->kind(id), TokenKind::unused);
    EXPECT_EQ(spm->vocabulary_text(id), "");
    EXPECT_EQ(spm->bytes(id, true), "");
  }
}

struct Lie {
  const char* what;
  std::function<void(ToyVocabulary&)> tell;
  const char* named;  // in the message
  ErrorKind kind = ErrorKind::format;
};

void expect_refused(const std::vector<Lie>& lies) {
  for (const Lie& lie : lies) {
    ToyVocabulary toy = toy_bpe();
    lie.tell(toy);
    try {
      toy.load();
      ADD_FAILURE() << lie.what;
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(error.kind(), lie.kind) << lie.what << ": " << message;
      EXPECT_NE(message.find(lie.named), std::string::npos) << lie.what << ": " << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
}

TEST(Tokenizer, AnotherPreTokenizerMayBeAskedFor) {
  const auto load = [](const ToyVocabulary& toy, std::string_view pre_tokenizer) {
    const auto bytes = toy.build();
    return load_tokenizer(*formats::CheckpointFile::parse(bytes), pre_tokenizer);
  };
  ToyVocabulary toy = toy_bpe();
  toy.pre = "of the future";
  EXPECT_EQ(load(toy, "gpt-2")->tokenize("the the"), toy_bpe().load()->tokenize("the the"));
  EXPECT_EQ(load(toy, "llama-bpe")->pre_tokenizer(), "llama-bpe");
  const auto refuses = [&](const ToyVocabulary& vocabulary, std::string_view name, ErrorKind kind, const char* what) {
    try {
      load(vocabulary, name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  };
  refuses(toy, "", ErrorKind::unsupported, "--pre-tokenizer NAME");
  refuses(toy, "no", ErrorKind::usage, "gpt-2");
  refuses(toy_spm(), "gpt-2", ErrorKind::usage, "\"llama\"");
}

TEST(Tokenizer, ABadVocabularyIsAClearError) {
  expect_refused({
      {"no model", [](auto& toy) { toy.model = ""; }, "tokenizer.ggml.model"},
      {"another model", [](auto& toy) { toy.model = "rwkv"; }, "expected one of gpt2, llama, t5, got \"rwkv\"",
       ErrorKind::unsupported},
      {"another pre-tokenizer", [](auto& toy) { toy.pre = "foo"; }, "tokenizer.ggml.pre",
       ErrorKind::unsupported},
      {"no tokens", [](auto& toy) { toy.texts.clear(); }, "tokenizer.ggml.tokens"},
      {"types short", [](auto& toy) { toy.types.pop_back(); }, "tokenizer.ggml.token_type"},
      {"types long", [](auto& toy) { toy.types.push_back(1); }, "tokenizer.ggml.token_type"},
      {"a type of 7", [](auto& toy) { toy.types[5] = 7; }, "entry 5"},
      {"a type below 0", [](auto& toy) { toy.types[5] = -1; }, "entry 5"},
      {"a token of 5,000 bytes", [](auto& toy) { toy.texts[9] = std::string(5000, 'x'); }, "token 9"},
      {"a merge of strangers", [](auto& toy) { toy.merges[3] = "the zz"; }, "entry 3"},
      {"a merge of one", [](auto& toy) { toy.merges[2] = "the"; }, "entry 2"},
      {"an empty merge", [](auto& toy) { toy.merges[0] = ""; }, "entry 0"},
      {"a merge to nothing", [](auto& toy) { toy.merges[1] = "a b"; }, "entry 1"},
  });
  const auto spm = [](const std::function<void(ToyVocabulary&)>& tell) {
    return [tell](ToyVocabulary& toy) { tell(toy = toy_spm()); };
  };
  expect_refused({
      {"scores short", spm([](auto& toy) { toy.scores.pop_back(); }), "tokenizer.ggml.scores"},
      {"a score that is none",
       spm([](auto& toy) { toy.scores[7] = std::numeric_limits<float>::quiet_NaN(); }), "entry 7"},
      {"a byte token spelled wrong", spm([](auto& toy) { toy.texts[4] = "<0x0G>"; }), "byte token 4"},
  });
  ToyVocabulary toy = toy_bpe();
  toy.merges.clear();
  EXPECT_NO_THROW(toy.load());
}

TEST(Tokenizer, AnIdOutOfRangeIsAClearError) {
  const auto key = [](const std::string& name, auto value) {
    return [=](ToyVocabulary& toy) {
      toy.more = [=](formats::GgufBuilder& file) { file.add("tokenizer.ggml." + name, value); };
    };
  };
  const auto size = static_cast<std::uint32_t>(toy_bpe().texts.size());
  EXPECT_NO_THROW({
    ToyVocabulary toy = toy_bpe();
    key("bos_token_id", size - 1)(toy);
    toy.load();
  });
  expect_refused({
      {"bos just out of range", key("bos_token_id", size), "bos_token_id"},
      {"eos out of range", key("eos_token_id", std::uint32_t{0xFFFFFFFF}), "eos_token_id"},
      {"eot out of range", key("eot_token_id", std::uint64_t{1} << 40U), "eot_token_id"},
      {"unknown out of range", key("unknown_token_id", std::uint32_t{9999}), "unknown_token_id"},
      {"bos a string", key("bos_token_id", "1"), "bos_token_id"},
  });
}

// Runs `work` on a thread with a stack of 256 KiB.
void on_small_stack(const std::function<void()>& work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256UL * 1024UL), 0);
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&work)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(Tokenizer, LongRunsNeedLittleStackAndLinearWork) {
  for (const auto& toy : {toy_bpe(), toy_spm()}) {
    const auto tokenizer = toy.load();
    for (const std::string part : {"A", "\n", " ", "日", "é", "the", "\x80", "<table", "A \n"}) {
      const auto work_on = [&](std::size_t count) {
        std::string text;
        for (std::size_t i = 0; i < count; ++i) text += part;
        TokenizeScratch scratch(text.size());
        Ids ids;
        on_small_stack([&] { ids = tokenizer->tokenize(text, {}, scratch); });
        EXPECT_EQ(bytes_of(*tokenizer, ids), text) << part;
        EXPECT_LE(scratch.characters_read, 3 * text.size()) << part;
        return scratch.merge.lookups;
      };
      const std::size_t once = work_on(20000);
      EXPECT_LE(work_on(40000), 2 * once + 10) << part;
      EXPECT_LE(once, 3 * 20000 * part.size()) << part;
    }
  }
}

TEST(Tokenizer, ManyThreadsShareOne) {
  const auto tokenizer = toy_bpe().load();
  std::mt19937 random(15);
  const std::string text = random_text(random, 4000);
  const Ids right = tokenizer->tokenize(text);
  std::vector<Ids> results(4);
  std::vector<std::thread> threads;
  for (Ids& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) result = tokenizer->tokenize(text);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Ids& result : results) EXPECT_EQ(result, right);
}

}  // namespace
}  // namespace couplet::text
