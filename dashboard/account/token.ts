import { tell } from "../frame/dialog.ts";

/** Shows a new token, once. */
export const showToken = (name: string, token: string): void =>
  tell({
    title: `The token ${name}`,
    text: "Copy it now. The service does not show it again.",
    secret: token,
  });
