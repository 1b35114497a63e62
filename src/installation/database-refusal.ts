/**
 * Explains why the database prevents the service's start. The message names the setting or directory, and never a
 * password.
 */
import path from "node:path";
import { isTagged } from "effect/Predicate";
import * as Schema from "effect/Schema";
import { thrownText } from "../ground/thrown.ts";
import type { Config } from "../settings/config.ts";

/** The start is refused: the database cannot be reached, created or opened. */
export class DatabaseRefused extends Schema.TaggedError<DatabaseRefused>()("DatabaseRefused", {
  message: Schema.String,
}) {}

/** Host and database of an address, as far as they are known. */
const databasePlace = (url: string): string => {
  const address = URL.parse(url);
  return address === null
    ? "not an address"
    : `${address.searchParams.get("host") ?? address.host}${address.pathname}`;
};

/** The reason with its remedy, which some errors bring. */
const withRemedy = (error: unknown, why: string): string => {
  if (isTagged(error, "DatabaseUnfit") || isTagged(error, "MigrationRefused")) return why;
  return /unsupported startup parameter/.test(why)
    ? `${why}. Let DATABASE_URL name the server itself, or let the pooler pass the parameter on.`
    : `${why}. Start it, or correct DATABASE_URL.`;
};

/** @param dataDir the real path of the data directory */
export const databaseRefusal = (
  { databaseUrl }: Pick<Config, "databaseUrl">,
  dataDir: string,
  error: unknown,
): DatabaseRefused => {
  const why = thrownText(error);
  if (databaseUrl !== null)
    return new DatabaseRefused({
      message: `The database that DATABASE_URL names (${databasePlace(databaseUrl)}) cannot be used: ${withRemedy(error, why)}`,
    });
  const isFull = /ENOSPC|No space left/i.test(why);
  const advice = isFull ? `The disk of ${dataDir} is full. Free some space, then start again.` : "";
  return new DatabaseRefused({
    message:
      `${why}\nThe embedded database is in ${path.join(dataDir, "postgres")} (PLATFORM_DATA_DIR). ${advice}`.trimEnd(),
  });
};
