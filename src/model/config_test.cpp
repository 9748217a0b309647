// Metadata that lies: each is refused in one line that names the key.

#include "model/config.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "couplet/error.h"
#include "formats/gguf_builder.h"
#include "model/families/family.h"

namespace couplet::model {
namespace {

// The metadata of a sound small llama, with some keys put in another way or left out.
struct Metadata {
  std::string family = "llama";
  std::optional<std::uint64_t> block_count = 2, embedding_length = 96, feed_forward_length = 160, head_count = 6,
                               head_count_kv = 2, context_length = 128, key_length, value_length, rope_dims;
  std::optional<float> epsilon = 1e-5F;
  std::uint64_t vocab_size = 8;
  std::function<void(formats::GgufBuilder&)> more = [](formats::GgufBuilder&) {};

  std::vector<std::byte> build() const {
    formats::GgufBuilder gguf;
    gguf.add("general.architecture", family);
    const auto add = [&](const char* key, std::optional<std::uint64_t> value) {
      if (value) gguf.add(family + "." + key, *value);
    };
    add("block_count", block_count);
    add("embedding_length", embedding_length);
    add("feed_forward_length", feed_forward_length);
    add("attention.head_count", head_count);
    add("attention.head_count_kv", head_count_kv);
    add("context_length", context_length);
    add("attention.key_length", key_length);
    add("attention.value_length", value_length);
    add("rope.dimension_count", rope_dims);
    if (epsilon) gguf.add(family + ".attention.layer_norm_rms_epsilon", *epsilon);
    more(gguf);
    if (vocab_size > 0) gguf.add_tensor("token_embd.weight", formats::TensorType::f32, {96, vocab_size});
    return gguf.build();
  }
};

std::string refusal(const Metadata& metadata) {
  const std::vector<std::byte> bytes = metadata.build();
  const auto file = formats::CheckpointFile::parse(bytes);
  try {
    read_config(*file);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Config, ReadsWhatIsThere) {
  const std::vector<std::byte> bytes = Metadata().build();
  const auto file = formats::CheckpointFile::parse(bytes);
  const ModelConfig config = read_config(*file);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.q_size(), 96);
  EXPECT_EQ(config.kv_size(), 32);
  EXPECT_EQ(config.vocab_size, 8);
  EXPECT_EQ(config.rope_dims, 16);
  EXPECT_EQ(config.attention_scale, 0.25F);
  ASSERT_EQ(config.ropes.size(), 1U);
  EXPECT_EQ(config.ropes[0].theta, 10000.0);
}

TEST(Config, GemmaTakesItsHeadSizeByKeyAndItsWindowsByPattern) {
  Metadata m;
  m.family = "gemma3";
  m.block_count = 13;
  m.key_length = m.value_length = 40;
  m.more = [](formats::GgufBuilder& gguf) { gguf.add("gemma3.attention.sliding_window", std::uint32_t{24}); };
  const std::vector<std::byte> bytes = m.build();
  const ModelConfig config = read_config(*formats::CheckpointFile::parse(bytes));
  EXPECT_EQ(config.head_dim, 40);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const bool global = i == 5 || i == 11;
    EXPECT_EQ(config.layers[i].window, global ? 0 : 24) << i;
    EXPECT_EQ(config.ropes[static_cast<std::size_t>(config.layers[i].rope_table)].theta, global ? 1e6 : 1e4) << i;
  }
}

struct Lie {
  const char* name;
  std::function<void(Metadata&)> tell;
  const char* expected;  // in the message
};

class ConfigLie : public ::testing::TestWithParam<Lie> {};

TEST_P(ConfigLie, IsRefusedByName) {
  Metadata metadata;
  GetParam().tell(metadata);
  const std::string message = refusal(metadata);
  EXPECT_NE(message.find(GetParam().expected), std::string::npos) << "got: " << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

const Lie kLies[] = {
    {"no_blocks", [](Metadata& m) { m.block_count = 0; },
     "\"llama.block_count\": expected a whole number from 1 to 1024, file says 0"},
    {"blocks_2_31", [](Metadata& m) { m.block_count = 1ULL << 31; }, "\"llama.block_count\""},
    {"blocks_2_63", [](Metadata& m) { m.block_count = 1ULL << 63; }, "\"llama.block_count\""},
    {"blocks_missing", [](Metadata& m) { m.block_count.reset(); }, "\"llama.block_count\": expected a whole number"},
    {"blocks_a_string",
     [](Metadata& m) {
       m.block_count.reset();
       m.more = [](formats::GgufBuilder& gguf) { gguf.add("llama.block_count", "two"); };
     },
     "llama.block_count"},
    {"no_heads", [](Metadata& m) { m.head_count = 0; }, "\"llama.attention.head_count\""},
    {"kv_heads_4_of_6", [](Metadata& m) { m.head_count_kv = 4; },
     "\"llama.attention.head_count_kv\": expected a divisor of the 6 heads, file says 4"},
    {"kv_heads_0", [](Metadata& m) { m.head_count_kv = 0; }, "\"llama.attention.head_count_kv\""},
    {"heads_do_not_divide", [](Metadata& m) { m.head_count = m.head_count_kv = 7; }, "\"llama.attention.head_count\""},
    {"odd_rope", [](Metadata& m) { m.rope_dims = 15; }, "\"llama.rope.dimension_count\": expected an even number"},
    {"rope_wider_than_a_head", [](Metadata& m) { m.rope_dims = 18; }, "\"llama.rope.dimension_count\""},
    {"values_of_another_size", [](Metadata& m) { m.value_length = 8; }, "\"llama.attention.value_length\""},
    {"head_size_0", [](Metadata& m) { m.key_length = 0; }, "\"llama.attention.key_length\""},
    {"no_context", [](Metadata& m) { m.context_length = 0; }, "\"llama.context_length\""},
    {"epsilon_not_a_number", [](Metadata& m) { m.epsilon = std::numeric_limits<float>::quiet_NaN(); },
     "\"llama.attention.layer_norm_rms_epsilon\""},
    {"epsilon_negative", [](Metadata& m) { m.epsilon = -1.0F; }, "\"llama.attention.layer_norm_rms_epsilon\""},
    {"no_embeddings", [](Metadata& m) { m.vocab_size = 0; }, "\"token_embd.weight\""},
    {"unknown_family", [](Metadata& m) { m.family = "mamba"; }, "family \"mamba\" is not built in; this engine runs: llama, mixtral, qwen2, qwen3, qwen3moe, gemma, gemma2, gemma3, phi3, olmo2, granite, gpt-oss, deepseek2"},
    {"rope_scaling",
     [](Metadata& m) { m.more = [](formats::GgufBuilder& gguf) { gguf.add("llama.rope.scaling.type", "foo"); }; },
     "\"llama.rope.scaling.type\": rope scaling \"foo\" is not built in"},
    {"mixtral_uses_no_expert",
     [](Metadata& m) { m.more = [](formats::GgufBuilder& gguf) { gguf.add("llama.expert_count", std::uint32_t{4}); }; },
     "\"llama.expert_used_count\": expected a whole number from 1 to 4, file says nothing"},
    {"qwen3moe_without_experts", [](Metadata& m) { m.family = "qwen3moe"; }, "\"qwen3moe.expert_count\""},
    {"qwen3moe_experts_without_size",
     [](Metadata& m) {
       m.family = "qwen3moe";
       m.more = [](formats::GgufBuilder& gguf) {
         gguf.add("qwen3moe.expert_count", std::uint32_t{4}).add("qwen3moe.expert_used_count", std::uint32_t{2});
       };
     },
     "\"qwen3moe.expert_feed_forward_length\": expected a whole number"},
    {"gpt_oss_uses_more_experts_than_it_has",
     [](Metadata& m) {
       m.family = "gpt-oss";
       m.more = [](formats::GgufBuilder& gguf) {
         gguf.add("gpt-oss.expert_count", std::uint32_t{4}).add("gpt-oss.expert_used_count", std::uint32_t{5});
       };
     },
     "\"gpt-oss.expert_used_count\": expected a whole number from 1 to 4, file says 5"},
    {"gemma2_cap_0",
     [](Metadata& m) {
       m.family = "gemma2";
       m.more = [](formats::GgufBuilder& gguf) { gguf.add("gemma2.final_logit_softcapping", 0.0F); };
     },
     "\"gemma2.final_logit_softcapping\""},
    {"granite_scale_negative",
     [](Metadata& m) {
       m.family = "granite";
       m.more = [](formats::GgufBuilder& gguf) { gguf.add("granite.residual_scale", -1.0F); };
     },
     "\"granite.residual_scale\""},
    {"scores_scaled_by_0",
     [](Metadata& m) { m.more = [](formats::GgufBuilder& gguf) { gguf.add("llama.attention.scale", 0.0F); }; },
     "\"llama.attention.scale\""},
    {"rope_base_0", [](Metadata& m) { m.more = [](formats::GgufBuilder& gguf) { gguf.add("llama.rope.freq_base", 0.0F); }; },
     "\"llama.rope.freq_base\""},
};

// A sound small deepseek2, with one key put in another way.
Lie deepseek(const char* name, const char* key, std::uint32_t value, const char* expected) {
  const auto tell = [key, value](Metadata& m) {
    m.family = "deepseek2";
    m.rope_dims.reset();
    m.more = [key, value](formats::GgufBuilder& gguf) {
      const std::pair<const char*, std::uint32_t> sound[] = {
          {"attention.kv_lora_rank", 24}, {"rope.dimension_count", 8}, {"attention.key_length", 20},
          {"attention.value_length", 16}, {"expert_count", 6}, {"expert_used_count", 3},
          {"expert_feed_forward_length", 40}, {"expert_group_count", 3}, {"expert_group_used_count", 2}};
      bool told = false;
      for (const auto& [sound_key, sound_value] : sound) {
        const bool lie = std::string(key) == sound_key;
        told |= lie;
        gguf.add(std::string("deepseek2.") + sound_key, lie ? value : sound_value);
      }
      if (!told) gguf.add(std::string("deepseek2.") + key, value);
    };
  };
  return {name, tell, expected};
}

TEST(Config, DeepseekCachesItsCompressedVectorAsOneHead) {
  Metadata m;
  deepseek("sound", "leading_dense_block_count", 1, "").tell(m);
  const std::vector<std::byte> bytes = m.build();
  const ModelConfig config = read_config(*formats::CheckpointFile::parse(bytes));
  EXPECT_EQ(config.num_kv_heads, 1);
  EXPECT_EQ(config.head_dim, 32);
  EXPECT_EQ(config.rope_begin, 24);
  EXPECT_EQ(config.latent.key_dim, 12);
  EXPECT_EQ(config.num_dense_layers, 1);
}

const Lie kDeepseekLies[] = {
    deepseek("no_rank", "attention.kv_lora_rank", 0, "\"deepseek2.attention.kv_lora_rank\""),
    deepseek("rank_2_20", "attention.kv_lora_rank", 1 << 20, "\"deepseek2.attention.kv_lora_rank\""),
    deepseek("odd_turned_part", "rope.dimension_count", 7, "\"deepseek2.rope.dimension_count\": expected an even number, file says 7"),
    deepseek("all_of_the_key_turned", "attention.key_length", 8, "\"deepseek2.attention.key_length\": expected a whole number from 9"),
    deepseek("no_values", "attention.value_length", 0, "\"deepseek2.attention.value_length\""),
    deepseek("newer_key_alone", "attention.key_length_mla", 20, "\"deepseek2.attention.value_length_mla\""),
    deepseek("groups_of_no_one_size", "expert_group_count", 4, "\"deepseek2.expert_group_count\": expected groups of one size"),
    deepseek("groups_too_small", "expert_group_used_count", 1, "\"deepseek2.expert_group_count\": expected groups of one size"),
    deepseek("more_groups_than_there_are", "expert_group_used_count", 4, "\"deepseek2.expert_group_used_count\""),
    deepseek("scores_of_another_kind", "expert_gating_func", 3, "\"deepseek2.expert_gating_func\""),
    deepseek("more_dense_layers_than_layers", "leading_dense_block_count", 3, "\"deepseek2.leading_dense_block_count\""),
    deepseek("a_shared_expert_of_2_30", "expert_shared_count", 1 << 25, "\"deepseek2.expert_shared_count\""),
};

INSTANTIATE_TEST_SUITE_P(DeepseekLies, ConfigLie, ::testing::ValuesIn(kDeepseekLies),
                         [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(Lies, ConfigLie, ::testing::ValuesIn(kLies),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace couplet::model
