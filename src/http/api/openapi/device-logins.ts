/** The raw routes of a device login in the OpenAPI document. Their forms and errors are those of RFC 8628. */
import { json, refusal, type RawOperation } from "./parts.ts";

const oauthError = json(
  {
    type: "object",
    properties: { error: { type: "string" }, error_description: { type: "string" } },
    required: ["error", "error_description"],
  },
  "An OAuth error, for example `authorization_pending`, `slow_down`, `access_denied` or `expired_token`.",
);

const common = {
  tag: "identity",
  body: "application/x-www-form-urlencoded",
  security: [],
} as const;

export const beginDeviceLogin: RawOperation = {
  ...common,
  id: "deviceLogins.begin",
  summary:
    "Begin to sign in a program without a browser (RFC 8628). `client_name` of the form is what the person sees.",
  responses: {
    200: json(
      {
        type: "object",
        properties: {
          device_code: { type: "string" },
          user_code: { type: "string" },
          verification_uri: { type: "string" },
          expires_in: { type: "integer" },
          interval: { type: "integer" },
        },
        required: ["device_code", "user_code", "verification_uri", "expires_in", "interval"],
      },
      "The program's code, the person's code and where she types it, and two times in seconds.",
    ),
    400: oauthError,
    413: refusal("The form is larger than 4 KiB."),
  },
};

export const claimDeviceLogin: RawOperation = {
  ...common,
  id: "deviceLogins.claim",
  summary: "Ask for the token of a device login, until the person has decided. The form is that of RFC 8628.",
  responses: {
    200: json(
      {
        type: "object",
        properties: {
          access_token: { type: "string" },
          token_type: { type: "string" },
          expires_in: { type: "integer" },
        },
        required: ["access_token", "token_type"],
      },
      "The token. It is in this answer and is never shown again.",
    ),
    400: oauthError,
    413: refusal("The form is larger than 4 KiB."),
  },
};
