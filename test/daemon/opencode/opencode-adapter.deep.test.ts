/** The conformance suite of agent runtimes over opencode's own HTTP API. */
import { agentAdapterConformance } from "../../conformance/agents/agent-adapter.ts";
import { OPENCODE_SERVE } from "../support/steered.ts";

agentAdapterConformance("opencode serve", OPENCODE_SERVE);
