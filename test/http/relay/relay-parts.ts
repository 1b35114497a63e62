/** What a relay needs in a test that makes one beside the service's own. */
import * as Layer from "effect/Layer";
import { localPreviews } from "../../../src/domain/session/preview.ts";
import { Addresses } from "../../../src/http/limits.ts";
import { openingsLayer } from "../../../src/http/callers/openings.ts";
import { Refusals } from "../../../src/services/audit.ts";

export const relayParts = Layer.mergeAll(
  openingsLayer,
  Refusals.layer,
  Layer.succeed(Addresses, {
    publicUrl: "http://platform.example",
    internalUrl: "http://platform.internal",
    previews: localPreviews(0),
  }),
);
