/** A project with a connector to which people sign in. */
import { afterAll } from "vitest";
import { startMcpServer } from "../support/servers/mcp-server.ts";
import { OAuthServer } from "../support/servers/oauth-server.ts";
import { makeProject } from "../support/service/requests.ts";
import type { TestService } from "../support/service/service.ts";

/** @returns a function that makes it: its id, which is the same each time. */
export const signInProject = (serviceNow: () => TestService) => {
  let project: Promise<string> | null = null;
  const open: (() => Promise<void>)[] = [];
  afterAll(async () => {
    for (const close of open) await close();
  });
  const make = async (): Promise<string> => {
    const login = await OAuthServer.open();
    const server = await startMcpServer([]);
    open.push(() => login.close(), server.close);
    login.protect(server);
    const entry = `[[connectors]]\nslug = "tracker"\nkind = "mcp"\nurl = "${server.url}"\nauth = "oauth"\n`;
    return makeProject(serviceNow(), { files: { "platform.toml": entry } });
  };
  return (): Promise<string> => (project ??= make());
};
