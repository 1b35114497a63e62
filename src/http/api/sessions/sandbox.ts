import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api";
import { RequiredPrivilege, Authorized } from "../access.ts";
import { Forbidden } from "../errors.ts";
import { Instant, projectParams } from "../schemas.ts";

const CloneCredential = Schema.Struct({
  repo_url: Schema.String,
  auth: Schema.Struct({ type: Schema.Literal("basic"), username: Schema.String, password: Schema.String }),
  expires_at: Instant,
  bootstrap: Schema.Literals(["pending", "done"]),
});

/** Endpoints for the in-sandbox daemon (spec 4.2, api.md 6). */
export class SandboxGroup extends HttpApiGroup.make("sandbox")
  .add(
    HttpApiEndpoint.get("cloneCredential", "/v1/projects/:pid/git/clone-credential", {
      params: projectParams,
      success: CloneCredential,
      error: Forbidden,
    }).annotate(RequiredPrivilege, "get_clone_credential"),
  )
  .middleware(Authorized) {}
