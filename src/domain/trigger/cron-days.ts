/** A field of a cron expression that begins with `*` restricts nothing. */
export const isRestricted = (field: string | undefined): boolean => field?.startsWith("*") === false;

/**
 * Whether day and weekday are both restricted, so either one suffices (cron.ts K1).
 * @param fields of an expression: second, minute, hour, day, month, weekday
 */
export const hasEitherDay = (fields: readonly string[]): boolean =>
  isRestricted(fields[3]) && isRestricted(fields[5]);
