/** For commands that need an installation with an embedded database: its settings, or the reason for refusing. */
import * as Effect from "effect/Effect";
import type { Environment } from "../../cli/configuration.ts";
import { EXIT, Failure } from "../../cli/failure.ts";
import { readConfig, type Config } from "../../settings/config.ts";

/** Fails if the settings name an external database. The caller handles invalid settings. */
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
