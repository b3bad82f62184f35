// What ThreadSanitizer cannot see: gRPC's library is not instrumented, and neither are the
// reference counts in it that order a reactor's last use before its deletion, and the locks that
// order the making of a call before its end. Both sides of a race are looked at, with their
// callers: what is named here must never call our code. (A call, an alarm or its timer of ours is
// made before it is given to gRPC, whose queue gives it back.) Read by the sanitizer's runtime.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:grpc::ServerUnaryReactor::~ServerUnaryReactor\n"
         "race:grpc::internal::CallbackUnaryCallImpl\n"
         "race:grpc::internal::CallOpSet\n"
         "race:grpc::internal::CallbackWithSuccessTag::Clear\n"
         "race:grpc::internal::CallbackWithSuccessTag::Set\n"
         "race:grpc::internal::ServerCallbackCall::Unref\n"
         "race:ServerCallbackUnaryImpl::ServerCallbackUnaryImpl\n"
         "race:ServerCallbackUnaryImpl::Finish(grpc::Status)$\n"
         "race:lockstep::test::PendingCall::PendingCall\n"
         "race:lockstep::RawChannel::InFlight::InFlight\n"
         "race:lockstep::rpc::CallEvent<*>::Arm\n"
         "race:lockstep::rpc::AlarmTimer::AlarmTimer\n"
         "race:lockstep::rpc::AlarmTimer::Pending::Pending\n";
}
