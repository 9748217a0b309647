#include "formats/gguf_metadata.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "couplet/error.h"
#include "formats/printable.h"

namespace couplet::formats {
namespace {

using Type = GgufValueType;

constexpr std::size_t kMostKeyBytes = 65'535;  // GGUF's own limit

const char* name_of(Type type) {
  constexpr const char* kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                    "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<std::uint32_t>(type)];
}

// Bytes of one value; 0 for strings and arrays, which say so themselves.
std::uint64_t size_of(Type type) {
  constexpr std::uint8_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kSizes[static_cast<std::uint32_t>(type)];
}

bool is_integer(Type type) { return type <= Type::i32 || type == Type::u64 || type == Type::i64; }
bool is_integer_or_bool(Type type) { return is_integer(type) || type == Type::boolean; }
bool is_float(Type type) { return type == Type::f32 || type == Type::f64; }
bool is_bool(Type type) { return type == Type::boolean; }
bool is_string(Type type) { return type == Type::string; }

template <class T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// Calls visit(number) with the number of that type at `bytes`; bools are 0 or 1.
template <class Visit>
void with_integer(Type type, const std::byte* bytes, Visit visit) {
  switch (type) {
    case Type::u8:
    case Type::boolean:
      return visit(load<std::uint8_t>(bytes));
    case Type::i8:
      return visit(load<std::int8_t>(bytes));
    case Type::u16:
      return visit(load<std::uint16_t>(bytes));
    case Type::i16:
      return visit(load<std::int16_t>(bytes));
    case Type::u32:
      return visit(load<std::uint32_t>(bytes));
    case Type::i32:
      return visit(load<std::int32_t>(bytes));
    case Type::u64:
      return visit(load<std::uint64_t>(bytes));
    default:
      return visit(load<std::int64_t>(bytes));
  }
}

double load_float(Type type, const std::byte* bytes) {
  return type == Type::f32 ? static_cast<double>(load<float>(bytes)) : load<double>(bytes);
}

// The integer at `bytes` as a To, or an error that names the key and the number.
template <class To>
To fitting_integer(std::string_view key, Type type, const std::byte* bytes) {
  To result{};
  with_integer(type, bytes, [&](auto number) {
    if (!std::in_range<To>(+number)) {
      throw Error(ErrorKind::format, "[gguf] key " + in_quotes(key) + ": expected a number from " +
                                         std::to_string(std::numeric_limits<To>::min()) + " to " +
                                         std::to_string(std::numeric_limits<To>::max()) + ", file says " +
                                         std::to_string(number));
    }
    result = static_cast<To>(number);
  });
  return result;
}

Type read_type(GgufReader& reader) {
  const auto id = reader.read<std::uint32_t>();
  if (id >= kNumGgufValueTypes) {
    reader.fail(ErrorKind::format, "expected a value type below " + std::to_string(kNumGgufValueTypes) +
                                       ", file says " + std::to_string(id));
  }
  return static_cast<Type>(id);
}

// Moves past `count` values of a type and returns their bytes.
std::span<const std::byte> take_values(GgufReader& reader, Type type, std::uint64_t count) {
  const std::uint64_t smallest = type == Type::string ? sizeof(std::uint64_t) : size_of(type);
  if (count > reader.left() / smallest) {
    reader.fail(ErrorKind::format, "expected at most " + std::to_string(reader.left() / smallest) +
                                       " values of " + name_of(type) + " in the bytes left, file says " +
                                       std::to_string(count));
  }
  if (type != Type::string) return reader.take(count * smallest);
  GgufReader ahead = reader;
  for (std::uint64_t i = 0; i < count; ++i) ahead.read_string();
  return reader.take(ahead.position() - reader.position());
}

}  // namespace

GgufMetadata::GgufMetadata(GgufReader& reader, std::uint64_t num_keys) {
  constexpr std::uint64_t kSmallestEntryBytes = 8 + 1 + 4 + 1;  // a key of one character with a bool
  if (num_keys > reader.left() / kSmallestEntryBytes) {
    reader.fail(ErrorKind::format, "expected at most " + std::to_string(reader.left() / kSmallestEntryBytes) +
                                       " keys in the bytes left, file says " + std::to_string(num_keys));
  }
  for (std::uint64_t i = 0; i < num_keys; ++i) entries_.push_back(read_entry(reader, i));
  index_ = NameIndex(entries_, [](const Entry& entry) { return entry.key; });
  if (const auto twice = index_.duplicate()) {
    reader.enter("key " + in_quotes(*twice));
    reader.fail(ErrorKind::format, "expected one value, file has several");
  }
}

GgufMetadata::Entry GgufMetadata::read_entry(GgufReader& reader, std::uint64_t index) {
  reader.enter("key number " + std::to_string(index + 1));
  Entry entry{};
  entry.key = reader.read_string();
  if (entry.key.empty() || entry.key.size() > kMostKeyBytes) {
    reader.fail(ErrorKind::format, "expected a name of 1 to " + std::to_string(kMostKeyBytes) +
                                       " bytes, file says " + std::to_string(entry.key.size()));
  }
  reader.enter("key " + in_quotes(entry.key));
  if (!is_printable(entry.key)) {
    reader.fail(ErrorKind::format, "expected a name in UTF-8 without control characters");
  }
  entry.type = read_type(reader);
  entry.count = 1;
  if (entry.type == Type::array) {
    entry.is_array = true;
    entry.type = read_type(reader);
    if (entry.type == Type::array) {
      reader.fail(ErrorKind::unsupported, "expected an array of plain values, file has an array of arrays");
    }
    entry.count = reader.read<std::uint64_t>();
  }
  entry.bytes = take_values(reader, entry.type, entry.count);
  if (entry.type == Type::boolean) {
    for (const std::byte value : entry.bytes) {
      if (value > std::byte{1}) {
        reader.fail(ErrorKind::format,
                    "expected a bool of 0 or 1, file says " + std::to_string(std::to_integer<int>(value)));
      }
    }
  }
  return entry;
}

const GgufMetadata::Entry* GgufMetadata::find(std::string_view key, bool array, bool (*accepts)(Type),
                                              const char* wanted) const {
  const auto position = index_.find(key);
  if (!position) return nullptr;
  const Entry& entry = entries_[*position];
  if (entry.is_array != array || !accepts(entry.type)) {
    throw Error(ErrorKind::format, "[gguf] key " + in_quotes(key) + ": expected " + wanted + ", file has " +
                                       (entry.is_array ? "an array of " : "") + name_of(entry.type));
  }
  return &entry;
}

std::optional<std::uint64_t> GgufMetadata::get_uint(std::string_view key) const {
  const Entry* entry = find(key, false, is_integer, "an integer");
  if (!entry) return std::nullopt;
  return fitting_integer<std::uint64_t>(key, entry->type, entry->bytes.data());
}

std::optional<double> GgufMetadata::get_float(std::string_view key) const {
  const Entry* entry = find(key, false, is_float, "a float");
  if (!entry) return std::nullopt;
  return load_float(entry->type, entry->bytes.data());
}

std::optional<bool> GgufMetadata::get_bool(std::string_view key) const {
  const Entry* entry = find(key, false, is_bool, "a bool");
  if (!entry) return std::nullopt;
  return entry->bytes[0] != std::byte{0};
}

std::optional<std::string_view> GgufMetadata::get_string(std::string_view key) const {
  const Entry* entry = find(key, false, is_string, "a string");
  if (!entry) return std::nullopt;
  return GgufReader(entry->bytes).read_string();
}

std::optional<std::vector<std::string_view>> GgufMetadata::get_strings(std::string_view key) const {
  const Entry* entry = find(key, true, is_string, "an array of strings");
  if (!entry) return std::nullopt;
  std::vector<std::string_view> strings(entry->count);
  GgufReader reader(entry->bytes);
  for (auto& string : strings) string = reader.read_string();
  return strings;
}

std::optional<std::vector<std::int64_t>> GgufMetadata::get_ints(std::string_view key) const {
  const Entry* entry = find(key, true, is_integer_or_bool, "an array of integers");
  if (!entry) return std::nullopt;
  std::vector<std::int64_t> numbers(entry->count);
  const std::byte* bytes = entry->bytes.data();
  for (auto& number : numbers) {
    number = fitting_integer<std::int64_t>(key, entry->type, bytes);
    bytes += size_of(entry->type);
  }
  return numbers;
}

std::optional<std::vector<float>> GgufMetadata::get_floats(std::string_view key) const {
  const Entry* entry = find(key, true, is_float, "an array of floats");
  if (!entry) return std::nullopt;
  std::vector<float> numbers(entry->count);
  const std::byte* bytes = entry->bytes.data();
  for (auto& number : numbers) {
    const double value = load_float(entry->type, bytes);
    if (std::isfinite(value) && std::abs(value) > static_cast<double>(std::numeric_limits<float>::max())) {
      throw Error(ErrorKind::format,
                  "[gguf] key " + in_quotes(key) + ": expected numbers that fit f32, file has a larger one");
    }
    number = static_cast<float>(value);
    bytes += size_of(entry->type);
  }
  return numbers;
}

std::vector<std::string_view> GgufMetadata::keys() const {
  std::vector<std::string_view> keys;
  keys.reserve(entries_.size());
  for (const Entry& entry : entries_) keys.push_back(entry.key);
  return keys;
}

}  // namespace couplet::formats
