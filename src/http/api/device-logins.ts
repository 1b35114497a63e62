import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api";
import { CLIENT_MAX } from "../../domain/person/device-login.ts";
import { RequiredPrivilege, Authorized } from "./access.ts";
import { NotFound, TooMany } from "./errors.ts";
import { Instant, Uuid } from "./schemas.ts";

const Code = Schema.String.check(Schema.isMaxLength(CLIENT_MAX)).annotate({
  description: "The code that the program shows, in any case, with or without its hyphen.",
});

export const DeviceLoginWire = Schema.Struct({
  id: Uuid,
  client: Schema.String.annotate({ description: "What the program calls itself. It may lie." }),
  address: Schema.NullOr(Schema.String),
  user_agent: Schema.NullOr(Schema.String),
  created_at: Instant,
  expires_at: Instant,
}).annotate({ identifier: "DeviceLogin" });

/** Programs that wait for a person to sign them in, for the person. For the program: http/raw/device-logins.ts. */
export class DeviceLoginsGroup extends HttpApiGroup.make("deviceLogins")
  .add(
    HttpApiEndpoint.post("lookAtDeviceLogin", "/device-logins/look", {
      payload: Schema.Struct({ code: Code }),
      success: DeviceLoginWire,
      error: [NotFound, TooMany],
    }).annotate(RequiredPrivilege, "manage_own_access"),
    HttpApiEndpoint.post("approveDeviceLogin", "/device-logins/approve", {
      payload: Schema.Struct({
        code: Code,
        project_id: Schema.optionalKey(Uuid),
        expires_at: Schema.optionalKey(Instant),
      }),
      success: DeviceLoginWire,
      error: [NotFound, TooMany],
    }).annotate(RequiredPrivilege, "manage_own_access"),
    HttpApiEndpoint.post("denyDeviceLogin", "/device-logins/deny", {
      payload: Schema.Struct({ code: Code }),
      success: HttpApiSchema.NoContent,
      error: [NotFound, TooMany],
    }).annotate(RequiredPrivilege, "manage_own_access"),
  )
  .middleware(Authorized)
  .prefix("/v1") {}
