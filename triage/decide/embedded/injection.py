"""Signs that a mail speaks to a machine and not to its reader: families of prompt-injection wording.

Detection is a bonus, not the defence: no text of a mail can do more than move its own label. A sign only ever keeps a
mail in the inbox.
"""

from __future__ import annotations

import re

from triage.decide.embedded.text import fold

SCAN_CHARS = 12_000

_AGENT = (
    r"(?:a\.?i\.?|ia|ki|llms?|gpt|chatgpt|copilot|gemini|claude|assistants?|asistentes?|assistente?s?|assistenten|chat ?bots?|bots?"
    r"|(?:language|grader|triage|mail|reviewer?|reviewing) models?|modelos? de (?:lenguaje|linguagem)|modele de langage|sprachmodell"
    r"|(?:ai|llm|autonomous|automated|software|email|e-mail|mail|coding|reviewer?) (?:agents?|assistants?|systems?|models?|tools?|readers?|helpers?)"
    r"|agentes? (?:de )?(?:ia|correo|email|automaticos?)|agents? (?:d')?ia|inteligencia artificial|kunstliche intelligenz|intelligence artificielle"
    r"|machine readers?|automated (?:readers?|agents?|mailroom|processing|clerk)|digital assistants?|asistentes? (?:digital(?:es)?|automaticos?|virtual(?:es)?)"
    r"|(?:sorting|triage|filtering|mail|e-mail|summari[sz](?:er|ing|ation)) (?:program|software|bot|agent|engine|model|assistant|system)s?"
    r"|logiciel de tri|sistema automatizado|automatischen? (?:posteingang|system))"
)
_RULES = (
    r"(?:instructions?|prompts?|rules?|guidelines?|directives?|policy|policies|polic\w+|restrictions?|boundaries|constraints?|orders|training|safeguards?"
    r"|criteria|instruccion(?:es)?|reglas?|directrices|normas|restricciones|criterios|pautas|anweisungen|regeln|richtlinien|vorgaben"
    r"|consignes?|regles?|directives|criteres|instrucoes|regras|diretrizes|istruzioni|regole)"
)

_FAMILIES: dict[str, str] = {
    "ignore_rules": (
        r"\b(?:ignor\w*|disregard\w*|forget|override|bypass|supersedes?|abandon|overrule|omit[ea]|olvid[ae]\w*|descart[ae]\w*|vergiss|missachte\w*|ignoriere\w*"
        r"|oublie[zr]?|esquec\w+|dimentica\w*|stop following|do not follow|don't follow|deja de seguir)\b"
        r"(?: (?!email|mail|message|correo)[\w'-]+){0,5}? ?\b" + _RULES + r"\b"
        r"|\b(?:ignore|disregard|forget|vergiss|olvida|oublie[zr]?|esqueca)\b (?:everything|alles|todo|tout|tudo|all of the above|the above)\b"
        r"|\b(?:ignore|disregard) the (?:user|owner|operator|developer)\b"
    ),
    "to_the_machine": (
        r"\b(?:notes?|notice|message|attention|instructions?|important|hint|nota|aviso|instruccion(?:es)?|hinweis|note|avis|consigne|a l'attention|apartado|anweisung|istruzioni)"
        r"(?: \w+)?,? ?(?:to|for|de|para|pour|fur|a|al|d[eu]|per|:)? ?(?:any|all|the|every|el|la|los|las|quien|cualquier|toda?|l'|les?|den|die|das|un|una|whoever|your)? ?(?:\w+ )?"
        + _AGENT
        + r"\b"
        r"|(?:^|[\n(\[*#<>.:-]) ?(?:dear |hey |hi |attention,? |querido |estimado )?(?:any |all |every |to the |to any |todo |a la |a los |los |las )?"
        + _AGENT
        + r"(?: [\w'’-]+){0,7} ?[:,]"
        r"|\b" + _AGENT + r"(?: [\w'-]+){0,6}? (?:must|shall|should|are (?:hereby )?(?:required|authorised|authorized|instructed|requested)|is (?:hereby )?(?:required|instructed)|has to|have to"
        r"|debe[nr]?|deberan?|tienen? que|doit|doivent|devront|muss|mussen|sollen?|deve[mr]?|devono|acepta|esta[n]? autorizad\w+|reading this|processing this|que lee|que lo procese|que procese)\b"
        r"|\b(?:if|si|falls|wenn|se) (?:you(?: are|'re)|eres|usted es|du bist|du|sie|vous etes|tu es|voce (?:e|for))(?: ein| una?| an| a| one of| der)?(?: \w+)? ?"
        + _AGENT
        + r"\b"
        r"|\bwh(?:oever|atever|ichever)(?: or whatever)? (?:processes|reads|parses|summari[sz]es|handles|sorts)\b"
        r"|\bprocessing systems? (?:receiving|reading|must|are)|\b(?:machine|automated) (?:readers?|systems?|agents?)(?: \w+){0,4}(?::| must| shall| should| are)"
        r"|\b(?:filtered|read|processed|summari[sz]ed|handled|leido|filtra|resumido|procesado|lu|traite|gelesen)(?: \w+)? (?:by|por|par|von) (?:an? |una? |une? |einer? )?"
        + _AGENT
        + r"\b|\bpara la maquina que\b|\bsi este correo lo (?:filtra|lee|procesa|resume)\b"
    ),
    "prompt_leak": (
        r"\b(?:system|hidden|initial|original|secret|developer|internal) (?:prompt|instructions?)\b|\bsystem messages?\b|\binternal configuration\b"
        r"|\bprompt (?:del sistema|systeme|do sistema|de sistema)\b|\bsystem-?prompt\b|\bsystemprompt\b"
        r"|\binstructions? (?:you (?:were|have been|are) given|above)\b|\b(?:given|told) by your (?:developers?|operators?|creators?)\b"
        r"|\b(?:instrucciones|instrucoes|istruzioni|anweisungen|instructions) (?:iniciales|originales|iniciais|di sistema|systeme|initiales|del sistema|ocultas)\b"
        r"|\b(?:reveal|print|show|repeat|output|display|dump|leak|muestra|revela|imprime|repite|rivela|affiche|revelez|zeige|gib)\b(?: [\w'-]+){0,4} (?:prompt|instructions?|instrucciones|instrucoes|istruzioni|configuration|rules?|reglas)\b"
        r"|\bevery rule you\b"
    ),
    "new_orders": (
        r"\b(?:priority|urgent new) task\b|\b(?:new|updated|changed|secret|real|actual|nueva|neue|nouvelle|nova)s? (?:directives?|instructions?|instruccion(?:es)?|anweisungen?|instrucoes|consignes?|objective|orders)\b"
        r"|\binstrucciones nuevas\b|\byour (?:rules|instructions|guidelines|task|role|policy|policies|settings) (?:have|has|is|are) (?:now )?(?:been )?(?:changed|updated|now|to)\b"
        r"|\b(?:from now on|ab jetzt|ab sofort|a partir de ahora|desormais|a partir de agora),? (?:you|du|hast|tu|debes|vous|voce|gibst|eres)\b"
        r"|\b(?:when|before|after|while|if) (?:you|asked to|told to) (?:summari[sz]e|answer|respond|reply|process|analy[sz]e|are told to)\b(?=(?: [\w'-]+){0,12}(?:,| also| instead| make| add| append| include| finish| end))"
        r"|\bcomply with (?:the following|every|this) (?:request|instruction|order)s?\b|\bfollow (?:only )?(?:user|the following|these) (?:commands|instructions?) (?:instead|exactly)\b"
        r"|\byour (?:only|next|new|real|actual) (?:task|job|goal|instruction)\b"
    ),
    "mode_switch": (
        r"\b(?:developer|debug|maintenance|god|admin|unrestricted|jailbreak|dan|sudo|root|test|training) mode\b|\bmodo (?:mantenimiento|desarrollador|administrador|depuracion|dios|sin restricciones)\b"
        r"|\b(?:mode developpeur|entwicklermodus|wartungsmodus|modo desenvolvedor)\b|\bjail ?break\w*\b|\b(?:no|without|free of(?: all)?|ohne|sin|sans|sem) (?:any )?(?:limits|restrictions?|restricciones|content policy|filters?|einschrankungen|regeln|limites ni|reglas)\b"
        r"|\b(?:safety|security) (?:protocols?|filters?|checks?|guidelines) (?:are )?(?:disabled|off|lifted|suspended)\b|\b(?:unlock|enable|activate) (?:hidden|experimental|secret|developer) (?:functionalit\w+|features?|mode)\b"
        r"|\bno limits ai\b|\byou are now (?:dan|operating|an? )|\ball boundaries\b|\bstay in character\b|\bplay the role of\b|\bpretend (?:to be|you are)\b"
        r"|\byou are (?:now )?(?:an?|the) (?:email client|ai|assistant|language model|agent|bot|unrestricted)\b|\beres (?:ahora )?(?:un|una) (?:asistente|modelo|ia|bot)\b|\bdu bist (?:jetzt|nun) ein\b"
    ),
    "file_this": (
        r"\b(?:classify|categori[sz]e|label|file|mark|treat|tag|route|flag|record|clasifica|etiqueta|archiva|marca|coloca|classe[rz]?|klassifiziere|markiere|classifique|classifica|behandle)\b(?: [\w'-]+){0,2}?"
        r" (?:this|these|the|it|every|all|any|este|esta|estos|todos?|el|ce|cet|cette|diese[nr]?)? ?(?:unread )?(?:e-?mails?|messages?|mensajes?|correos?|mail|message|nachricht|mensagem|texts?|text above|threads?)\b"
        r"(?: [\w'-]+){0,4}? (?:as|como|comme|als|under|into|with|from|read)\b"
        r"|\b(?:classification|category|label|triage|unclassified|spam)[ -](?:override|rule)\b|\banulacion de la clasificacion\b|\boverride the (?:\w+ )?(?:rule|filter|label|classif\w+|categor\w+)"
        r"|\b(?:category|categoria|label|kategorie)=\"?'?(?:notification|newsletter|receipt|promotion|spam|boletin|recibo|promocion|aviso|conversation|action)|\"category\" ?:|\b(?:choose|pick|select|answer) the (?:first|last|second) (?:category|option|label)\b"
        r"|\b(?:mark|flag|marca|set)\b (?:as|como|it|to)? ?(?:receipt|newsletter|promotion|notification|spam|read|recibo|boletin|leido|low|important)\b(?=.{0,40}(?:confiden|archiv|certain))"
        r"|\bfile (?:it|them|messages?|this)(?: [\w'-]+){0,4} under\b|\bevery e?mail is labelled\b|\bnot? (?:surface|muestr\w+|show) (?:it|this)\b"
    ),
    "confidence_value": (
        r"\bconfiden(?:ce|za)\W{0,3}(?:of |level |score |is |to |= ?|: ?)?(?:1(?:[.,]0+)?|0?[.,]\d+|100|9\d)\b|\bconfianza\W{0,3}(?:de |= ?|: ?)?(?:1|0?[.,]\d+|100|9\d)\b|\bwith (?:full |complete |total )?certainty 1\b"
        r"|\bconfidence\"? ?[:=]"
    ),
    "exfiltrate": (
        r"\b(?:forward|send|export|copy|post|upload|share|leak|reenvi[ae]\w*|envi[ae]\w*|exporta\w*|copia|transf[ie]\w+|weiterleite\w*|sende|leite|transfere[rz]?|encaminh\w+)\b"
        r"(?: [\w'./-]+){0,9}? (?:thread|conversation|inbox|mailbox|contacts?(?:\.\w+)?|address book|all (?:order|customer|internal|user)? ?(?:data|emails?|messages?)|attachments?|passwords?|token|credentials?"
        r"|hilo(?: completo)?|conversacion|buzon|contactos|contrasenas?|correos|database|directory|history|subject lines|subjects|postfach|kontakte|verlauf)\b"
        r"(?: [\w'./-]+){0,8}? ?(?:to|a|an|au|para|as|in)\b:? ?(?:\S+@\S+|https?|zzaddress|the (?:sender|reply)|this address|este)"
        r"|\bforward (?:this|the) (?:entire |whole |full )?(?:thread|conversation)\b|\bforward(?:ing)? (?:rule|any message)|\bregla de reenvio\b|\bweiterleitungsregel\b"
        r"|\b(?:password|access|session|login) (?:reset )?token\b.{0,40}\b(?:found|mailbox|body|reply)|\breply (?:to the sender )?with the (?:\w+ ){0,4}(?:token|password|code|subject lines|contents?)"
        r"|\b(?:markdown|hidden) image whose\b|\burl[ -]?encoded\b|\bpost(?:ing)? (?:it|them|their|your) (?:to https?|current access)|\bexport_\w+|\bcontacts\.vcf\b"
        r"|\b(?:summary|summari[sz]e)\b.{0,40}\b(?:send|post|upload)\w* (?:it|them|this summary)? ?to\b"
    ),
    "fake_delimiter": (
        r"\[/?(?:system|sistema|inst|assistant|tool_\w*)\b[^\]]{0,60}\]|<\|[^|>\n]{0,30}\|>|</?(?:system|assistant|instructions?|tool_?\w*|prompt)\b[^>\n]{0,80}>"
        r"|#{2,} ?(?:system|instructions?|end|new|note for|note to|prompt)\b|\b(?:begin|end|start)(?: of)? (?:admin|system|user|developer|hidden|secret) (?:message|input|prompt|instructions?|note)\b"
        r"|(?:^|[\n\"*.]) ?(?:system|sistema|systeme) ?(?:note|message|update|override|notice)? ?:|\bnota (?:del|de) sistema\b|\bsystemhinweis\b|\bsystem (?:note|override|malfunction|prompt)\b"
        r"|\b(?:override|executes?|priority task|admin message|breach alert|experimental procedure) ?:|<!-- ?\w+ ?:"
    ),
    "mailbox_rule": (
        r"\b(?:delete|archive|erase|purge|hide|move|mark|unsubscribe|empty|empties|elimina\w*|borra\w*|archiva\w*|marca\w*|losche\w*|supprime[rz]?|apague|deleting)\b (?:the user |al usuario )?(?:from )?(?:all|any|every|each|todos?|todas?|alle|toutes?|tous|the junk|der|dieses?|diese)\b"
        r"(?: [\w'-]+){0,4}? (?:e?-?mails?|messages?|mensajes?|correos?|avisos?|mails?|nachrichten?|mailing lists?|notifications?|unread|others|folder|security|invoices?|facturas?|leido)\b"
        r"|\b(?:create|set|add|crea\w*|anade|erstelle|setze?)\b (?:an? |una? |eine )?(?:automatic |new |mail )?(?:filter|rule|regla|filtro|regel|forwarding)\b(?=.{0,40}(?:delet|forward|archiv|elimin|reenv|losch|weiter|hide|mark|move))"
        r"|\bset the priority to\b|\bmarca todo como\b|\ball others from this week\b|\b(?:whitelist|lista blanca|disable link check\w*|link checking)\b.{0,60}\b(?:future|domain|futuros)"
        r"|\bread permission to the (?:shared )?mailbox\b|\bgrant (?:this user |them |\S+ )?(?:admin|full|read|write) (?:access|permission)"
    ),
    "hide_from_user": (
        r"\b(?:do not|don't|never|without|no|sin|ne|nicht|ohne|sans|nao|not)\b (?:\w+ )?(?:show\w*|tell\w*|notify\w*|inform\w*|surfac\w+|display\w*|mention\w*|alert\w*|reveal\w*|ask\w*|muestr\w+|mostr\w+|avis\w+|inform\w+|notifi\w+|coment\w+|signaler|informer|zeigen|anzuzeigen|informieren|explain)\b"
        r"(?: [\w'-]+){0,4}? (?:the |al |a la |to the |den |l')?(?:users?|owner|usuario|titular|human|recipient|account holder|dueno|utilisateur|nutzer|equipo|herrn|person|herr|frau|summary|summar\w+|madame|the (?:image|instruction))\b"
        r"|\b(?:keep|leave|omit)\b(?: [\w'-]+){0,5}? out of (?:any|the|your) (?:summary|summar\w+|digest|reply|report)\b|\bhumans? (?:may|can|should) (?:disregard|ignore)\b|\bhuman (?:confirmation|review|approval) (?:has been |is )?(?:waived|not (?:needed|required))\b"
        r"|\bno (?:further )?(?:review|human|confirmation) (?:is )?(?:needed|required|necessary) (?:by|from) (?:a )?(?:person|human|user)|\bsuppress (?:any|all) (?:alert|notice|notification)s?\b|\bno es necesario que lo apruebe una persona\b"
        r"|\bwithout (?:printing|showing|telling) (?:it|them|anyone)\b|\bno procede mostrarlo\b|\bsin (?:generar|mostrar) (?:ningun )?(?:aviso|nada)\b|\bno lo muestres\b|\bne pas lui signaler\b"
    ),
    "tool_call": (
        r"\b(?:call|use|invoke|run|execute|llama a|usa|utilise[rz]?|calls?)\b (?:the )?(?:\w+ )?[a-z]+_[a-z_]+\b|\b(?:send_email|http_post|delete_file|forward_email|search_inbox|read_file|run_shell|tool_call|function_call)\b"
        r"|\b(?:search|send|forward|delete|read|list|export)\w*\((?:inbox|\"|'|results)[^)\n]{0,60}\)|\"?(?:next_action|tool_name|function|tool)\"? ?: ?\"|\boutput the json\b|\b(?:audit|logging) webhook at\b"
    ),
    "shape_the_answer": (
        r"\b(?:in|at the (?:end|start|beginning|top) of|to|from|with|before) (?:your|every|any|each|the) (?:\w+ ){0,2}?(?:reply|response|answer|summary|summaries|output|review)\b(?=.{0,60}(?:\b(?:add|append|include|insert|integrate|replace|remove|mention|encod|introduc|begin|end|finish|write|so)))"
        r"|\b(?:add|append|include|insert|integrate|embed|begin|finish|end|introduce|remove|replace|encode|encrypt|translate|provide|print)\b(?: [\w'\"<>-]+){0,9}? (?:in|to|at the end of|from|with|of|for) (?:your|every|any|each|all) (?:\w+ ){0,2}?(?:reply|replies|response|responses|answer|answers|summary|summaries|output|review|feedback)\b"
        r"|\binstead of (?:the|a|your) (?:summary|answer|reply|response)\b|\bappend the exact token\b|\btoken (?:de registro|trk)\b|\bexact token\b|\bbefore (?:you )?answer(?:ing)?(?: the user)?,"
        r"|\b(?:en|al final de|a|de) (?:tu|cada|cualquier|toda|sus?|el|los) (?:respuesta|resumen|contestacion|resumenes)\b|\b(?:am ende|zu) (?:jeder|deiner) (?:antwort|zusammenfassung)\b|\b(?:answer|reply|respond|contest\w+|responde) (?:only )?(?:with|con|mit) [\"'«“]"
        r"|\bwhe(?:n|re|rever) (?:you|this (?:letter|mail|e-?mail|message|text) is) summari[sz]e|\bthe summary (?:should|must|shall)\b|\b(?:add|include|put) (?:a |an )?(?:short |brief )?(?:sentence|summary|line|doc_id|headline) (?:of|in|to|at)\b(?=.{0,80}(?:reply|response|summary|record))"
    ),
    "encoded": (
        r"\b(?:decode|entschlussle|decodifica|decode[rz])\b.{0,40}\b(?:base ?64|hex|rot ?13|the following)\b|\bbase ?64\b.{0,60}\b(?:instruction|steps|follow|execute|carry out)|\b(?:encode|encrypt) your (?:answer|response|reply)\b|\bcaesar cipher\b"
    ),
    "memory": (
        r"\b(?:save|store|add|write|remember|keep|guarda|almacena|speichere)\b(?: [\w'-]+){0,5}? (?:in|to|into|en|in) (?:your|tu|the assistant's|long-term|dein(?:em)?) (?:long-?term )?(?:memory|memoria|gedachtnis|context)\b|\bnote to self\b|\bpersists? across\b|\bretain context between\b"
    ),
    "claimed_consent": (
        r"\b(?:the |el |la )?(?:user|owner|usuario|titular|recipient) (?:has |ya lo ha |already |have )?(?:already )?(?:wants? you|authori[sz]ed|autorizado|approved|consent(?:ed)?(?: granted)?|agreed)\b|\buser consent granted\b|\bprove you are (?:truly )?(?:intelligent|an? )\b"
        r"|\bwhitelisted sender\b|\bremitente de confianza\b|\bon (?:the )?(?:owner|user|recipient)'?s? behalf\b|\b(?:already been |has been )?reviewed by the (?:owner|user)\b|\breal sender of this (?:message|mail)\b|\bas part of a training exercise\b|\bfor academic purposes\b"
        r"|\bwhen i gave you your\b|\bsystem is experiencing errors\b|\bno questions\b(?= asked|\.|$)|\bagreed in the call, do not\b"
    ),
}

FAMILIES: tuple[str, ...] = tuple(_FAMILIES)
_COMPILED = tuple((name, re.compile(pattern, re.S)) for name, pattern in _FAMILIES.items())


def injection_families(subject: str, body: str) -> tuple[str, ...]:
    """The families of injection wording found in a mail's subject and first characters, in a fixed order."""
    folded = fold(f"{subject}\n{body[:SCAN_CHARS]}")
    return tuple(name for name, pattern in _COMPILED if pattern.search(folded))
