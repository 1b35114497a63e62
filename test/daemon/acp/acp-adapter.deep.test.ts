/** The conformance suite of agent runtimes over the Agent Client Protocol. */
import { agentAdapterConformance } from "../../conformance/agents/agent-adapter.ts";
import { OPENCODE_ACP } from "../support/steered.ts";

agentAdapterConformance("opencode acp", OPENCODE_ACP);
