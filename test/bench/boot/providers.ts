/** The providers that this machine can start, each with the settings of a service that uses it. */
import { sandboxesStartHere } from "../../support/requirements.ts";

export const PROVIDERS = ["local", "gvisor", "docker"] as const;
export type ProviderName = (typeof PROVIDERS)[number];

export interface Opened {
  readonly settings: Readonly<Record<string, string>>;
  readonly close: () => Promise<void>;
}

const none = async (): Promise<void> => undefined;

/** @returns the reason as a text if this machine cannot start it. A part is loaded, and fetched, only when it is wanted. */
const OPEN: Readonly<Record<ProviderName, () => Promise<Opened | string>>> = {
  local: async () => (sandboxesStartHere ? { settings: {}, close: none } : "(needs bubblewrap)"),
  gvisor: async () => {
    if (!sandboxesStartHere) return "(needs bubblewrap)";
    const { lacksRunsc, runsc } = await import("../../support/machine/runsc.ts");
    return runsc === null ? (lacksRunsc ?? "") : { settings: { PLATFORM_RUNSC: runsc }, close: none };
  },
  docker: async () => {
    const { lacksEngine, TestEngine } = await import("../../support/machine/container-engine.ts");
    if (lacksEngine !== null) return lacksEngine;
    try {
      const engine = await TestEngine.open();
      return { settings: { PLATFORM_DOCKER_SOCKET: engine.socket }, close: () => engine.close() };
    } catch (error) {
      return `(${String(error)})`;
    }
  },
};

export const openProvider = async (name: ProviderName): Promise<Opened | string> => {
  const opened = await OPEN[name]();
  return typeof opened === "string"
    ? opened
    : { ...opened, settings: { ...opened.settings, PLATFORM_SANDBOX_PROVIDER: name } };
};

/** Reads the option. @throws Error that names the choices */
export const providersOf = (text: string): readonly ProviderName[] =>
  text.split(",").map((name) => {
    const known = PROVIDERS.find((provider) => provider === name);
    if (known === undefined) throw new Error(`--providers takes ${PROVIDERS.join(", ")}, not ${name}`);
    return known;
  });
