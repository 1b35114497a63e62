/** Examples of the caller, her tokens, her browsers, and the programs that she signs in. */
import { ACCOUNT, browser, deviceLogin, identity, token, TOKEN, USER } from "./records.ts";

export const IDENTITY_EXAMPLES = {
  "identity.me": {
    summary: "Show the caller: its user, its account and its token.",
    response: {
      user: { id: USER, name: "admin", role: "owner" },
      account: {
        id: ACCOUNT,
        name: "default",
        tier: "free",
        session_cap: 3,
        active_sessions: 1,
        queued_fires: 0,
        operator: true,
      },
      token: { id: TOKEN, origin: "user", project_id: null },
      terminals: "members",
      paused: false,
    },
  },
  "identity.listTokens": {
    summary: "List the account's tokens, newest first. Secrets are not shown.",
    response: { tokens: [token], next_cursor: null },
  },
  "identity.createToken": {
    summary: "Create a token. Its secret is in this answer and is never shown again.",
    request: { name: "laptop" },
    response: { ...token, token: "platform_pat_kQ3vX0aYw1nT7uR5sB9cD2eF4gH6jK8mN0pQ2rS" },
  },
  "identity.deleteToken": {
    summary: "Revoke a token. Requests and connections that it opened end within a second.",
  },
  "identity.listBrowsers": {
    summary: "List the browsers that the caller is signed in with, newest first.",
    response: { browsers: [browser], next_cursor: null },
  },
  "identity.endBrowsers": {
    summary: "Sign the caller out of all browsers. Everything they opened ends within a second.",
  },
  "identity.endBrowser": {
    summary: "Sign the caller out of one browser. Everything it opened ends within a second.",
  },
  "identity.listIdentities": {
    summary: "List what sign-in providers call the caller, the oldest first. She signs in with each of them.",
    response: { identities: [identity] },
  },
  "identity.removeIdentity": {
    summary:
      "Take an identity from the caller, but not her last one. Browsers that it signed in end within a second.",
  },
  "deviceLogins.lookAtDeviceLogin": {
    summary: "Show the program that waits for a person with this code. Changes nothing.",
    request: { code: "BCDF-GHJK" },
    response: deviceLogin,
  },
  "deviceLogins.approveDeviceLogin": {
    summary: "Sign the program in as the caller. It gets a token that reaches what the caller says.",
    request: { code: "BCDF-GHJK", expires_at: deviceLogin.expires_at },
    response: deviceLogin,
  },
  "deviceLogins.denyDeviceLogin": {
    summary: "Refuse the program. Its code is over.",
    request: { code: "BCDF-GHJK" },
  },
} as const;
