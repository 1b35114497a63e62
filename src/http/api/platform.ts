/** The API without its groups. A group's handlers add their own group to it, and know no other; `src/assembly/api.ts` joins all of them. */
import { HttpApi } from "effect/http-api";

export const Platform = HttpApi.make("platform")
  // An unknown field is the caller's mistake and is refused (api.md 1, threats.md T06). Unknown headers are allowed.
  .annotate(HttpApi.ParseOptions, { onExcessProperty: "error", errors: "all" })
  .annotate(HttpApi.HeadersParseOptions, {});
