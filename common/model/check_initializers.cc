#include "common/model/check_initializers.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/tensor.pb.h"

namespace lockstep {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const Message& KindOf(const LayerDef& layer) {
  const google::protobuf::Reflection& of_layer = *layer.GetReflection();
  return of_layer.GetMessage(layer, of_layer.GetOneofFieldDescriptor(
                                        layer, LayerDef::descriptor()->FindOneofByName("kind")));
}

bool HasNoBias(const Message& kind) {
  const FieldDescriptor* const field = kind.GetDescriptor()->FindFieldByName("no_bias");
  return field != nullptr && kind.GetReflection()->GetBool(kind, field);
}

absl::Status Unread(const LayerDef& layer, absl::string_view field, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("layer \"", layer.name(), "\": ", field, ": ", why));
}

}  // namespace

absl::Status CheckInitializers(const ModelDef& model) {
  for (const LayerDef& layer : model.layers()) {
    const Message& kind = KindOf(layer);
    std::vector<const FieldDescriptor*> given;
    kind.GetReflection()->ListFields(kind, &given);
    for (const FieldDescriptor* const field : given) {
      if (field->message_type() != Initializer::descriptor()) continue;
      if (!layer.variables_of().empty()) {
        return Unread(
            layer, field->name(),
            absl::StrCat("its variables are those of \"", layer.variables_of(),
                         "\". Remedy: write ", field->name(), " at that layer, or not at all"));
      }
      if (field->name() == "bias_initializer" && HasNoBias(kind)) {
        return Unread(layer, field->name(), "the layer has no bias. Remedy: remove it, or no_bias");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep
