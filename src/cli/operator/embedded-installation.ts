/** What works on an installation that keeps its own database alone: its settings, or why there are none. */
import * as Effect from "effect/Effect";
import type { Environment } from "../configuration.ts";
import { EXIT, Failure } from "../failure.ts";
import { readConfig, type Config } from "../../config.ts";

/** Fails where the settings name a database of somebody else's; one that is misread is the caller's to hear. */
export const ofEmbedded = <A, E>(
  environment: Environment,
  use: (config: Config) => Effect.Effect<A, E>,
): Effect.Effect<A, E | Failure> =>
  Effect.suspend((): Effect.Effect<A, E | Failure> => {
    const config = readConfig(environment, process.cwd());
    if (config.databaseUrl === null) return use(config);
    return Effect.fail(
      new Failure(EXIT.refused, "not_embedded", {
        message:
          "This command backs up the embedded database only. DATABASE_URL is set, so use the backup tools of that database.",
      }),
    );
  });
