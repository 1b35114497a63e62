/** Whose a session is. The page loads this file, so it imports nothing. */

export interface SessionOrigin {
  readonly createdBy: string;
  readonly triggerSlug: string | null;
  readonly parentSessionId: string | null;
}

/** Whether the person started it herself, and not a trigger or an agent of hers. */
export const isStartedBy = (
  { createdBy, triggerSlug, parentSessionId }: SessionOrigin,
  userId: string,
): boolean => createdBy === userId && triggerSlug === null && parentSessionId === null;
