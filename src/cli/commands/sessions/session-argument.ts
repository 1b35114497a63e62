/** The session that a command names. */
import type { Environment } from "../../configuration.ts";
import { usageFailure } from "../../failure.ts";
import { sessionId } from "../../words.ts";

/** The named session, otherwise the one in whose sandbox this runs. */
export const namedSession = (word: string | undefined, environment: Environment): string => {
  const text = word ?? environment["PLATFORM_SESSION_ID"] ?? "";
  if (text === "") throw usageFailure("SESSION is missing, and PLATFORM_SESSION_ID is not set.");
  return sessionId(text);
};
