import { memoryStore } from "../../src/store/memory/layer.ts";
import { storeConformance } from "../conformance/store.ts";

storeConformance("memory", memoryStore);
