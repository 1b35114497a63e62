/** A session as a host of OpenSSH. The command line sets it up, and the page shows it (docs/use/editors.md). */

const SUFFIX = "platform";

/** All sessions, as a pattern of OpenSSH's configuration. */
export const SSH_HOSTS = `*.${SUFFIX}`;

/** How many digits of an id a name has: the last ones, because ids of one minute begin alike. */
const DIGITS = 8;

export const sshHost = (projectId: string, sessionId: string): string =>
  `${sessionId.slice(-DIGITS)}.${projectId.slice(-DIGITS)}.${SUFFIX}`;

/** What stands for the session and the project in a host's name. Null if the name has another form. */
export const namedByHost = (host: string): { readonly session: string; readonly project: string } | null => {
  const [session = "", project = "", suffix, more] = host.split(".");
  if (session === "" || project === "" || suffix !== SUFFIX || more !== undefined) return null;
  return { session, project };
};
