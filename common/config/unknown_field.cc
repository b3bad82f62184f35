#include "common/config/unknown_field.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/nearest.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "proto/model.pb.h"

namespace lockstep {
namespace {

using google::protobuf::Descriptor;
using Types = std::vector<const Descriptor*>;
using Names = std::vector<std::string>;

// What users of other systems write, and how it is said here.
struct ForeignField {
  const char* name;
  const char* remedy;
};
constexpr ForeignField kForeign[] = {
    {"activation", "write it as a layer of its own, layers { name: \"relu\" relu {} }"},
    {"lr", "write it in optimizer, learning_rate { base: 0.01 }"},
};

// More owners of one name than this tell nothing.
constexpr size_t kMostOwners = 3;

struct TextFileKind {
  const Descriptor* type;
  const char* name;    // of the file's content
  const char* plural;  // of such files
};

const std::vector<TextFileKind>& FileKinds() {
  static const auto* const kinds = new std::vector<TextFileKind>{
      {JobDef::descriptor(), "the job", "job files"},
      {ModelDef::descriptor(), "the model", "model files"},
      {ClusterDef::descriptor(), "the cluster spec", "cluster specs"}};
  return *kinds;
}

Names FieldNames(const Descriptor& type) {
  Names names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return names;
}

// "a", "a or b", "a, b or c".
std::string OneOf(const Names& names) {
  if (names.size() < 2) return absl::StrJoin(names, "");
  return absl::StrCat(absl::StrJoin(names.begin(), names.end() - 1, ", "), " or ", names.back());
}

// Names of the fields of `outer` that are blocks of `inner`, or hold one at any depth.
Names WaysTo(const Descriptor& outer, const Descriptor& inner) {
  Names ways;
  for (int i = 0; i < outer.field_count(); ++i) {
    const Descriptor* held = outer.field(i)->message_type();
    if (held != nullptr && absl::c_linear_search(TypesOf(*held), &inner)) {
      ways.push_back(outer.field(i)->name());
    }
  }
  return ways;
}

// The innermost block around `type` that has the field. May be null.
const Descriptor* OwnerAround(const Types& types, const Descriptor& type,
                              const std::string& field) {
  for (auto outer = types.rbegin(); outer != types.rend(); ++outer) {
    if (*outer != &type && (*outer)->FindFieldByName(field) != nullptr &&
        !WaysTo(**outer, type).empty()) {
      return *outer;
    }
  }
  return nullptr;
}

bool ShareAWord(const std::string& a, const std::string& b) {
  const Names words = absl::StrSplit(a, '_');
  for (absl::string_view word : absl::StrSplit(b, '_')) {
    if (absl::c_linear_search(words, word)) return true;
  }
  return false;
}

// The names that are likely to be meant: the one that is spelled alike, or those with a word of it.
Names Similar(const std::string& field, const Names& known) {
  if (std::string nearest = Nearest(field, known); !nearest.empty()) return {std::move(nearest)};
  Names similar;
  for (const std::string& name : known) {
    if (ShareAWord(field, name)) similar.push_back(name);
  }
  return similar;
}

// `first`, then the rest of `known` in the order of the alphabet.
std::string Listed(const Names& first, Names known) {
  std::erase_if(known, [&](const auto& name) { return absl::c_linear_search(first, name); });
  std::sort(known.begin(), known.end());
  known.insert(known.begin(), first.begin(), first.end());
  return absl::StrJoin(known, ", ");
}

Names OwnersOf(const Types& types, const std::string& field) {
  Names owners;
  for (const Descriptor* type : types) {
    if (type->FindFieldByName(field) != nullptr) owners.push_back(BlockName(types, *type));
  }
  std::sort(owners.begin(), owners.end());
  return owners;
}

}  // namespace

Types TypesOf(const Descriptor& root) {
  Types types = {&root};
  for (size_t next = 0; next < types.size(); ++next) {
    for (int i = 0; i < types[next]->field_count(); ++i) {
      const Descriptor* inner = types[next]->field(i)->message_type();
      if (inner != nullptr && !absl::c_linear_search(types, inner)) types.push_back(inner);
    }
  }
  return types;
}

const google::protobuf::FieldDescriptor* FindField(const Types& types, const std::string& name) {
  for (const Descriptor* type : types) {
    if (const auto* field = type->FindFieldByName(name)) return field;
  }
  return nullptr;
}

std::string BlockName(const Types& types, const Descriptor& type) {
  for (const TextFileKind& kind : FileKinds()) {
    if (kind.type == &type) return kind.name;
  }
  Names names;
  for (const Descriptor* outer : types) {
    for (int i = 0; i < outer->field_count(); ++i) {
      const std::string& name = outer->field(i)->name();
      if (outer->field(i)->message_type() == &type && !absl::c_linear_search(names, name)) {
        names.push_back(name);
      }
    }
  }
  return names.empty() ? type.name() : OneOf(names);
}

std::string DescribeUnknownField(const Types& types, const Descriptor& type,
                                 const std::string& field) {
  const std::string what =
      absl::StrCat("unknown field \"", field, "\" in ", BlockName(types, type));
  if (const Descriptor* outer = OwnerAround(types, type, field)) {
    return absl::StrCat(what, ": it stands in ", BlockName(types, *outer), ", beside ",
                        OneOf(WaysTo(*outer, type)), ". Remedy: move it there; is a } missing ",
                        "above?");
  }
  for (const TextFileKind& kind : FileKinds()) {
    if (types[0] == &type && kind.type != &type && kind.type->FindFieldByName(field) != nullptr) {
      return absl::StrCat(what, ": it is a field of ", kind.plural, ". Remedy: give the file of ",
                          BlockName(types, type), " here");
    }
  }
  for (const ForeignField& foreign : kForeign) {
    if (field == foreign.name) return absl::StrCat(what, ". Remedy: ", foreign.remedy);
  }
  const Names known = FieldNames(type);
  const Names similar = Similar(field, known);
  if (!similar.empty()) {
    Names quoted;
    for (const std::string& name : similar) quoted.push_back(absl::StrCat("\"", name, "\""));
    return absl::StrCat(what, "; did you mean ", OneOf(quoted), "? Remedy: use one of ",
                        Listed(similar, known));
  }
  const Names owners = OwnersOf(types, field);
  const std::string elsewhere = owners.empty() || owners.size() > kMostOwners
                                    ? ""
                                    : absl::StrCat("; it is a field of ", OneOf(owners));
  return absl::StrCat(what, elsewhere, ". Remedy: ",
                      known.empty() ? "leave this block empty: {}"
                                    : absl::StrCat("use one of ", Listed({}, known)));
}

}  // namespace lockstep
