/** `platform logout`. */
import { rmSync } from "node:fs";
import { Client } from "../client.ts";
import { command } from "../command.ts";
import { configurationFile, readLogin } from "../configuration.ts";
import { Failure } from "../failure.ts";

export const logout = command({
  name: "logout",
  about: "Forget the service and its token",
  notes:
    "A token that `platform login` made for this computer is deleted at the service as well. One that you gave to it stays valid.",
  run: async ({ environment, note }) => {
    const file = configurationFile(environment);
    const login = readLogin(file);
    if (login === null) return { json: JSON.stringify({ logged_out: false }), text: "Not logged in." };
    const client = new Client({ ...login, environment });
    let isDeleted = false;
    if (login.isOwn)
      try {
        const { value } = await client.call("GET /v1/me", {});
        await client.call("DELETE /v1/tokens/:id", { params: { id: value.token.id } });
        isDeleted = true;
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        // A person who wants to leave can leave, whatever the service says.
        note(`The token was not deleted at the service: ${error.message}`);
      }
    rmSync(file, { force: true });
    return {
      json: JSON.stringify({ logged_out: true, token_deleted: isDeleted }),
      text: isDeleted ? "Logged out. The token is deleted." : "Logged out. The token itself stays valid.",
    };
  },
});
