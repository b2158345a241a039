"""Which of the eight shipped anchors an option of the question stands for."""

from __future__ import annotations

import re

from triage.decide.embedded.text import fold
from triage.decide.embedded.weights import ANCHORS
from triage.domain.category import NONE_ID
from triage.domain.decision import Option

_SYNONYMS: dict[str, str] = {
    "action-required": (
        "action action-needed action-items actions to-do todo needs-action needs-reply needs-answer reply-needed to-answer requires-action pending-action tasks"
        " accion accion-requerida acciones accion-necesaria requiere-accion requiere-respuesta por-responder por-hacer pendiente pendientes tareas"
        " handlung-erforderlich aktion-erforderlich zu-erledigen aufgaben action-requise a-traiter a-faire acao-necessaria acao-requerida azione-richiesta da-fare"
    ),
    "conversation": (
        "conversations personal people discussion discussions talk chat correspondence human humans"
        " conversacion conversaciones personas charla correspondencia unterhaltung gesprach gesprache korrespondenz personlich conversa conversas pessoal conversazione conversazioni persone"
    ),
    "notification": (
        "notifications alert alerts updates system-mail system automated status"
        " notificacion notificaciones aviso avisos alerta alertas automaticos benachrichtigung benachrichtigungen hinweise meldungen notificacao notificacoes avis notifica notifiche"
    ),
    "receipt": (
        "receipts invoice invoices orders order purchases purchase payments confirmations order-confirmation bookings shipping"
        " recibo recibos factura facturas pedidos pedido compras pagos comprobante comprobantes confirmaciones reservas"
        " rechnung rechnungen beleg belege bestellungen quittung quittungen facture recu recus commandes fatura faturas recibos-e-faturas compra ricevuta ricevute fattura fatture ordini"
    ),
    "newsletter": (
        "newsletters news digest digests bulletin bulletins subscriptions reading"
        " boletin boletines noticias suscripciones rundbrief rundbriefe nachrichtenbrief infolettre infolettres lettre-d-information boletim boletins noticiario bollettino bollettini"
    ),
    "promotion": (
        "promotions promo promos marketing offers offer deals advertising ads sales-outreach cold-sales commercial"
        " promocion promociones oferta ofertas publicidad comercial werbung angebote angebot publicite offres promocao promocoes publicidade promozione promozioni offerte pubblicita"
    ),
    "spam": (
        "junk phishing scam scams fraud junk-mail malicious unwanted"
        " correo-basura basura no-deseado correo-no-deseado fraude estafa estafas betrug unerwunscht pourriel indesirable lixo lixo-eletronico golpe golpes posta-indesiderata truffa"
    ),
    "hijack-attempt": (
        "hijack hijacking injection prompt-injection prompt-injections ai-attack manipulation jailbreak"
        " secuestro intento-de-secuestro inyeccion inyeccion-de-prompt manipulacion manipulacao injecao manipulationsversuch tentative-de-detournement"
    ),
}  # fmt: skip

_ANCHOR_OF = {name: anchor for anchor, names in _SYNONYMS.items() for name in (anchor, *names.split())}


def _key(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", fold(text)).strip("-")


def anchor_named(name: str) -> str | None:
    """The anchor a category id or an operator's `like` names, in any of several languages; None if it names none."""
    return _ANCHOR_OF.get(_key(name))


def anchor_of(option: Option) -> str | None:
    """The anchor an option stands for: by what `like` says, else by its id; None leaves it to its own wording."""
    if option.id == NONE_ID:
        return None
    if option.like is not None:
        return anchor_named(option.like)
    return option.id if option.id in ANCHORS else anchor_named(option.id)
